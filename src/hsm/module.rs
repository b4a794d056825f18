//! A PKCS#11 module: the vendor's library, which is loaded and initialised once for the process, whichever configuration names it.
//!
//! Invariants: no call runs while the library is initialised again, and no session outlives that; a PIN that a token refused is not tried
//! again before [`Module::allow_logins`].

use crate::{
    fault::{LoadFault, Part, shown},
    settings::{Pin, Pkcs11Settings},
    state::{State, lock},
};
use cryptoki::{
    context::{CInitializeArgs, CInitializeFlags, Function, Pkcs11},
    error::{Error, RvError},
    session::{Session, UserType},
    types::AuthPin,
};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, RwLock, Weak},
};

/// The modules of the process. One stays loaded to its end: libraries start threads, which must not lose their code.
static MODULES: Mutex<BTreeMap<PathBuf, Arc<Module>>> = Mutex::new(BTreeMap::new());

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    /// A call reads it; initialising it again writes it.
    context: RwLock<Pkcs11>,
    /// The tokens that refused a PIN, with it. Locked during a login, so that a wrong PIN is tried once.
    refused: Mutex<Vec<(String, Pin)>>,
    /// The states of the keys in use.
    states: Mutex<Vec<Weak<State>>>,
}

impl Module {
    /// The module of this path, loaded and initialised.
    pub(crate) fn load(path: &Path) -> Result<Arc<Self>, LoadFault> {
        let mut modules = lock(&MODULES);
        if let Some(module) = modules.get(path) {
            return Ok(Arc::clone(module));
        }
        let fault = |error: Error| {
            let path = path.display();
            let text = format!(
                "{path} cannot be loaded as a PKCS#11 module: {}",
                shown(&error)
            );
            LoadFault::new(Part::Module, text)
        };
        let context = Pkcs11::new(path).map_err(fault)?;
        initialize(&context).map_err(fault)?;
        let module = Arc::new(Self {
            context: RwLock::new(context),
            refused: Mutex::default(),
            states: Mutex::default(),
        });
        modules.insert(path.to_owned(), Arc::clone(&module));
        Ok(module)
    }

    /// Lets each module try a PIN once more that a token refused.
    pub(crate) fn allow_logins() {
        for module in lock(&MODULES).values() {
            // During a login the library may not return; then there is nothing to allow.
            if let Ok(mut refused) = module.refused.try_lock() {
                refused.clear();
            }
            for state in module.states() {
                state.wake();
            }
        }
    }

    /// Makes calls, during which the library stays initialised.
    pub(crate) fn call<T>(&self, calls: impl FnOnce(&Pkcs11) -> T) -> T {
        calls(&self.context.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The state of a key's use, whose sessions are closed before the library is initialised again.
    pub(crate) fn register(&self, state: &Arc<State>) {
        let mut states = lock(&self.states);
        states.retain(|known| known.strong_count() > 0);
        states.push(Arc::downgrade(state));
    }

    fn states(&self) -> Vec<Arc<State>> {
        let states = lock(&self.states);
        states.iter().filter_map(Weak::upgrade).collect()
    }

    /// Logs in; a token has one login for all sessions of the process.
    pub(crate) fn log_in(&self, session: &Session, key: &Pkcs11Settings) -> Result<(), LoadFault> {
        let mut refused = lock(&self.refused);
        let pair = (key.token.clone(), key.pin.clone());
        if refused.contains(&pair) {
            return Err(Error::Pkcs11(RvError::PinIncorrect, Function::Login).into());
        }
        let pin = AuthPin::new(key.pin.text().to_owned().into());
        match session.login(UserType::User, Some(&pin)) {
            Ok(()) | Err(Error::Pkcs11(RvError::UserAlreadyLoggedIn, _)) => Ok(()),
            Err(error) => {
                let fault = LoadFault::from(error);
                if fault.part == Part::Pin {
                    refused.push(pair);
                }
                Err(fault)
            }
        }
    }

    /// Initialises the library again, as a client of p11-kit needs after its server was started again, unless one of its keys can be used
    /// or a call still runs. True if it was done.
    pub(crate) fn initialize_again(&self) -> bool {
        let states = self.states();
        let mut usable = states.iter().filter(|state| state.fault().is_none());
        if let Some(usable) = usable.next() {
            // It may have been lost without a call that says so.
            usable.wake();
            return false;
        }
        let Ok(context) = self.context.try_write() else {
            return false;
        };
        for state in &states {
            state.close_sessions();
        }
        // An error says that it is not initialised, or that its server is away: either way it is initialised next.
        let _ = context.clone().finalize();
        initialize(&context).is_ok()
    }
}

fn initialize(context: &Pkcs11) -> Result<(), Error> {
    match context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Err(Error::Pkcs11(RvError::CryptokiAlreadyInitialized, _)) => Ok(()),
        other => other,
    }
}
