//! The names that ETSI TS 119 612 gives: namespaces, types of lists, types and states of services, additional information.

/// The namespace of trusted lists (TS 119 612, annex C).
pub const TSL: &str = "http://uri.etsi.org/02231/v2#";

/// The namespace of `MimeType` and `TakenOverBy`.
pub const ADDITIONAL: &str = "http://uri.etsi.org/02231/v2/additionaltypes#";

/// The namespace of qualifications.
pub const QUALIFICATIONS: &str =
    "http://uri.etsi.org/TrstSvc/SvcInfoExt/eSigDir-1999-93-EC-TrustedList/#";

/// The namespace of XAdES, in which the identifiers of policies stand.
pub const XADES: &str = "http://uri.etsi.org/01903/v1.3.2#";

/// The namespace of `xml:lang`.
pub const XML: &str = "http://www.w3.org/XML/1998/namespace";

/// The namespace of signatures.
pub const SIGNATURE: &str = "http://www.w3.org/2000/09/xmldsig#";

/// The namespace of what XML Signature 1.1 has added.
pub const SIGNATURE_11: &str = "http://www.w3.org/2009/xmldsig11#";

/// The tag of every list (clause 5.2.1).
pub const TAG: &str = "http://uri.etsi.org/19612/TSLTag";

/// What types of lists begin with (clause 5.3.3).
pub const TSL_TYPE: &str = "http://uri.etsi.org/TrstSvc/TrustedList/TSLType/";

/// What types of services begin with (clause 5.5.1).
pub const SERVICE_TYPE: &str = "http://uri.etsi.org/TrstSvc/Svctype/";

/// What states of services begin with (clause 5.5.4).
pub const SERVICE_STATUS: &str = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/";

/// What additional service information and qualifiers begin with (clauses 5.5.9.2 and 5.5.9.4).
pub const EXTENSION: &str = "http://uri.etsi.org/TrstSvc/TrustedList/SvcInfoExt/";

/// The media type of a list in XML (clause 5.3.13).
pub const XML_LIST: &str = "application/vnd.etsi.tsl+xml";

/// A URI without the beginning that all URIs of its kind have; the whole URI if it has another.
pub fn short<'a>(uri: &'a str, beginning: &str) -> &'a str {
    uri.strip_prefix(beginning).unwrap_or(uri)
}
