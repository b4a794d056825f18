import java.io.FileInputStream;
import java.net.URI;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.security.*;
import java.security.cert.*;
import java.security.spec.PKCS8EncodedKeySpec;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;

/** Signs requests of java.net.http: new TppSignature("tpp.pem", "tpp.key").request("GET", uri, headers, "") */
public record TppSignature(X509Certificate certificate, PrivateKey key) {
    static final List<String> SIGNED = List.of("date", "digest", "x-request-id", "psu-id", "psu-corporate-id", "tpp-redirect-uri");
    // Java's own RFC_1123_DATE_TIME writes days before the tenth with one digit.
    static final DateTimeFormatter DATE = DateTimeFormatter.ofPattern("EEE, dd MMM yyyy HH:mm:ss 'GMT'", Locale.ENGLISH);

    public TppSignature(String certificateFile, String keyFile) throws Exception {
        this((X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(new FileInputStream(certificateFile)),
            KeyFactory.getInstance("RSA").generatePrivate(new PKCS8EncodedKeySpec(Base64.getMimeDecoder().decode(
                Files.readString(Path.of(keyFile)).replaceAll("(?s).*BEGIN PRIVATE KEY-----(.*)-----END.*", "$1")))));
    }

    public HttpRequest request(String method, URI uri, Map<String, String> more, String body) throws Exception {
        var headers = new TreeMap<String, String>(String.CASE_INSENSITIVE_ORDER);
        headers.putAll(more);
        headers.put("date", DATE.format(ZonedDateTime.now(ZoneOffset.UTC)));
        headers.putIfAbsent("x-request-id", UUID.randomUUID().toString());
        if (!body.isEmpty()) headers.put("digest", "SHA-256=" + b64(MessageDigest.getInstance("SHA-256").digest(utf8(body))));
        String query = uri.getRawQuery() == null ? "" : "?" + uri.getRawQuery();
        var names = new StringJoiner(" ").add("(request-target)");
        var lines = new StringJoiner("\n").add("(request-target): " + method.toLowerCase() + " " + uri.getRawPath() + query);
        for (String name : SIGNED) if (headers.containsKey(name)) { names.add(name); lines.add(name + ": " + headers.get(name)); }
        Signature signer = Signature.getInstance("SHA256withRSA");
        signer.initSign(key);
        signer.update(utf8(lines.toString()));
        String value = "keyId=\"SN=" + certificate.getSerialNumber().toString(16).toUpperCase() + ",CA=" + certificate.getIssuerX500Principal().getName()
            + "\",algorithm=\"rsa-sha256\",headers=\"" + names + "\",signature=\"" + b64(signer.sign()) + "\"";
        headers.put("signature", value.matches("\\p{ASCII}*") ? value : "=?utf-8?B?" + b64(utf8(value)) + "?=");
        headers.put("tpp-signature-certificate", b64(certificate.getEncoded()));
        var request = HttpRequest.newBuilder(uri).method(method, HttpRequest.BodyPublishers.ofString(body));
        headers.forEach(request::header);
        return request.build();
    }
    static byte[] utf8(String text) { return text.getBytes(StandardCharsets.UTF_8); }
    static String b64(byte[] bytes) { return Base64.getEncoder().encodeToString(bytes); }
}
