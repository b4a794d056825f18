//! One operation of the interface, as data (HTTP-11).

use super::{
    member::Member,
    parameter::Parameter,
    path_id::{PRODUCT_PARAMETER, PathId, is_parameter},
    vocabulary::{
        Agreement, AnsweredBy, Body, Environments, Quota, Required, Role, Sca, Schema, Signs,
        Takes, Transactions,
    },
};
use crate::path::{self, AccountIds, IdFault, Target};
use http::Method;
use jiff::civil::Date;
use std::borrow::Cow;

/// One operation of the interface.
#[derive(Clone, Debug)]
pub struct Operation {
    /// The stable name: the metric label, the log field, Gateway-Operation.
    pub name: String,
    /// The operation that answers this payment product where the product has none of its own; `None` for every other operation.
    pub product_of: Option<String>,
    /// The method.
    pub method: Method,
    /// The path with its parameters in braces, as in `/v1/accounts/{id}/balances`.
    pub path: String,
    /// The environments in which the operation exists (HTTP-1).
    pub environments: Environments,
    /// The PSD2 role that it needs (CRT-5).
    pub role: Role,
    /// The required headers, except Date, TPP-Signature-Certificate and Signature, which all operations require.
    pub required: Vec<Required>,
    /// Which headers reach the core (HDR-3).
    pub takes: Takes,
    /// The query parameters that it has (QRY-1); others are forwarded as they are.
    pub query: Vec<Parameter>,
    /// The body that it takes (HTTP-8).
    pub body: Body,
    /// The schema of a JSON body (PAY-1 to PAY-14).
    pub schema: Schema,
    /// The members that a payment product of a deployment requires or adds; empty for the interface's own.
    pub members: Vec<Member>,
    /// Its requirement on the PSU (SCA-8).
    pub sca: Sca,
    /// Whether calls without the PSU are limited (QUO-1 to QUO-3).
    pub quota: Quota,
    /// The part of an account's transactions that it shows.
    pub transactions: Transactions,
    /// Whether a request in a corporate context must name the agreement (HDR-14).
    pub agreement: Agreement,
    /// The ids in its path, in their order (HTTP-10).
    pub path_ids: Vec<PathId>,
    /// The object that a PSU signs in an SCA that it starts (SCA-12).
    pub signs: Signs,
    /// Whether the operation initiates a payment: only then X-PSU-IDENTITY may replace PSU-ID (HDR-12).
    pub initiates: bool,
    /// Whether its errors carry tppMessages (ERR-1): those of payments and baskets do.
    pub tpp_messages: bool,
    /// The group by which it is routed and documented (FWD-3), and by which settings of a deployment select operations.
    /// No rule of the interface depends on it.
    pub group: String,
    /// The component that answers the operation (SCA-20).
    pub answered_by: AnsweredBy,
    /// The replacement of the operation by another one (FWD-5). `None` if it is not deprecated.
    pub deprecated: Option<Deprecated>,
    /// The core's answer, as a deployment declares it for its description. The gateway judges no answer by it.
    pub answer: Option<Answer>,
}

/// A declared answer of the core.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status, from 200 to 299.
    pub status: u16,
    /// The JSON Schema of its body, without references.
    pub schema: serde_json::Value,
}

/// The deprecation of an operation (FWD-5, §Versioning).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deprecated {
    /// The date since which the operation should not be used: the beginning of this day in UTC.
    pub since: Date,
    /// The date from which the operation may be unavailable, also in UTC.
    pub sunset: Option<Date>,
    /// The name of the replacing operation. Its path has no parameters.
    pub successor: Option<String>,
}

impl Operation {
    /// Whether its path names a payment product.
    pub fn takes_product(&self) -> bool {
        path::segments(&self.path).any(|segment| segment == PRODUCT_PARAMETER)
    }

    /// Whether some request has the method and a path of both. `products` are the known payment products (HTTP-3).
    pub fn overlaps(&self, other: &Self, products: &[&str]) -> bool {
        let meet = |one: &str, two: &str| match (is_parameter(one), is_parameter(two)) {
            (true, true) => true,
            (true, false) => one != PRODUCT_PARAMETER || products.contains(&two),
            (false, true) => two != PRODUCT_PARAMETER || products.contains(&one),
            (false, false) => one == two,
        };
        let own: Vec<_> = path::segments(&self.path).collect();
        let others: Vec<_> = path::segments(&other.path).collect();
        let mut pairs = own.iter().zip(&others);
        self.method == other.method
            && own.len() == others.len()
            && pairs.all(|(one, two)| meet(one, two))
    }

    /// Whether SCA that it starts is about consent to account information (SCA-18).
    pub fn asks_consent(&self) -> bool {
        self.sca == Sca::Consent
            || self.answered_by == AnsweredBy::Gateway && self.role == Role::AccountInformation
    }

    /// The same operation at another path, with the ids of that path (HTTP-11, QUO-16).
    pub fn at(self, path: &str) -> Self {
        Self {
            path: path.to_owned(),
            path_ids: PathId::all_in(path),
            ..self
        }
    }

    /// The account among the ids of a request's path: consent and quota are judged by it (SCA-18, QUO-16).
    pub fn account<'i>(&self, ids: &'i [Cow<'_, str>]) -> Option<&'i str> {
        let mut pairs = self.path_ids.iter().zip(ids);
        let account = pairs.find(|(kind, _)| **kind == PathId::Account);
        account.map(|(_, id)| id.as_ref())
    }

    /// The ids by which calls are counted (QUO-15): the account, and with `each` also those of the transaction.
    pub fn counted_ids<'i>(&self, ids: &'i [Cow<'_, str>], each: bool) -> Vec<&'i str> {
        let others = self.path_ids.iter().zip(ids);
        let others = others.filter(|(kind, _)| each && **kind != PathId::Account);
        let account = self.account(ids).into_iter();
        account.chain(others.map(|(_, id)| id.as_ref())).collect()
    }

    /// The ids in a path that is this operation's, decoded, in their order: HTTP-10 keys by those. The ids of accounts
    /// are made of `account_ids`, the others of the characters that a path may hold.
    ///
    /// # Errors
    /// The fault of an id.
    pub fn ids<'a>(
        &self,
        target: &Target<'a>,
        account_ids: &AccountIds,
    ) -> Result<Vec<Cow<'a, str>>, IdFault> {
        let mut ids = Vec::new();
        if self.path_ids.is_empty() {
            return Ok(ids);
        }
        let segments = path::segments(&self.path).zip(target.segments());
        let found = segments.filter(|(segment, _)| is_parameter(segment));
        for ((_, id), kind) in found.zip(&self.path_ids) {
            let id = path::decode(id);
            let is_account = matches!(kind, PathId::Account | PathId::AccountLike);
            if is_account {
                account_ids.judge(&id)?;
            }
            if id.len() > path::MAX_ID {
                return Err(IdFault::OtherLength(path::MAX_ID));
            }
            ids.push(id);
        }
        Ok(ids)
    }

    /// The part of a request's path that names the payment or the basket that the PSU signs (SCA-12, QUO-16): it ends with its id. None
    /// where the operation signs nothing, or makes it.
    pub fn resource<'p>(&self, path: &'p str) -> Option<&'p str> {
        let signed = self.signs.id()?;
        let parameters = self.path.split('/').enumerate();
        let parameters = parameters.filter(|(_, segment)| is_parameter(segment));
        let mut pairs = parameters.zip(&self.path_ids);
        let ((id, _), _) = pairs.find(|(_, kind)| **kind == signed)?;
        let end = path.match_indices('/').nth(id).map(|(end, _)| end);
        end.map_or(Some(path), |end| path.get(..end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operations::builtin;

    /// HDR-12, HDR-14.
    #[test]
    fn what_initiates_payments_and_where_no_agreement_is_named() {
        let names = |holds: fn(&Operation) -> bool| {
            let operations = builtin().into_iter();
            operations
                .filter(holds)
                .map(|operation| operation.name)
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names(|operation| operation.initiates),
            ["cross-border-payment-create", "payment-create"]
        );
        assert_eq!(
            names(|operation| operation.agreement == Agreement::Open),
            [
                "user-register",
                "agreement-list",
                "consent-create",
                "bank-offered-consent-create"
            ]
        );
    }
}
