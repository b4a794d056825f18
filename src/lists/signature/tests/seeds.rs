//! The inputs with which the fuzz target `trusted_list` starts.

use super::own_signers;
use crate::{
    Document,
    for_tests::mint::{List, Scheme, Service, Signer},
    verify,
};
use std::{env, fs, path::Path};

/// A list of each scheme verifies; it is kept in the folder that PORTVAKT_SEEDS names (tests/fuzz/run.sh).
#[test]
fn signed_lists_of_each_scheme_verify() {
    for scheme in [Scheme::Rsa, Scheme::Pss, Scheme::Ecdsa] {
        let name = format!("{scheme:?}");
        let list = List::national("NO", vec![Service::for_seals("Seals")]);
        let list = list.sign(&Signer::new("Signer of Norway", scheme));
        let document = Document::parse(list.clone().into_bytes()).unwrap();
        let verified = verify(&document, &own_signers(list.as_bytes()));
        assert!(verified.is_ok(), "{name}");
        if let Some(folder) = env::var_os("PORTVAKT_SEEDS") {
            let folder = Path::new(&folder).join("trusted_list");
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(name), list).unwrap();
        }
    }
}
