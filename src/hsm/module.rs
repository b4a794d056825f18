//! A PKCS#11 module: the vendor's library, which is loaded and initialised once for the process, whichever configuration names it.
//!
//! Invariants: loading ends for its caller within [`LOADING`]; no call runs while the library is initialised again or after its end, and no
//! session outlives that; a PIN is tried once more only after a login that says that the token did not judge it.

use crate::{
    fault::{LoadFault, Part, shown},
    library::LibraryFile,
    settings::Pkcs11Settings,
    state::{State, lock},
};
use cryptoki::{
    context::{CInitializeArgs, CInitializeFlags, Pkcs11},
    error::Error,
    session::{Session, UserType},
    types::AuthPin,
};
use portvakt_base::clock::Stopwatch;
use std::{
    collections::BTreeMap,
    path::Path,
    sync::{Arc, Condvar, Mutex, PoisonError, RwLock, Weak, mpsc::sync_channel},
    thread,
    time::Duration,
};

/// The longest time that a caller waits until a module is loaded and initialised.
const LOADING: Duration = Duration::from_secs(10);

/// The modules of the process. One stays loaded to its end: libraries start threads, which must not lose their code.
static LOADS: Mutex<Vec<Arc<Load>>> = Mutex::new(Vec::new());

/// A module that is loaded, or being loaded by a thread of its own: a library that does not return takes that thread only.
struct Load {
    file: LibraryFile,
    since: Stopwatch,
    /// `None` until the library has returned.
    loaded: Mutex<Option<Result<Arc<Module>, LoadFault>>>,
    returned: Condvar,
}

impl Load {
    fn start(file: LibraryFile) -> Result<Arc<Self>, LoadFault> {
        let load = Arc::new(Self {
            file,
            since: Stopwatch::start(),
            loaded: Mutex::default(),
            returned: Condvar::new(),
        });
        let own = Arc::clone(&load);
        spawn(move || {
            let loaded = Module::new(&own.file).map(Arc::new);
            *lock(&own.loaded) = Some(loaded);
            own.returned.notify_all();
        })?;
        Ok(load)
    }

    fn has_failed(&self) -> bool {
        matches!(*lock(&self.loaded), Some(Err(_)))
    }

    fn wait(&self) -> Result<Arc<Module>, LoadFault> {
        let left = LOADING.saturating_sub(self.since.elapsed());
        let loaded = lock(&self.loaded);
        let waited = self
            .returned
            .wait_timeout_while(loaded, left, |loaded| loaded.is_none());
        let (loaded, _) = waited.unwrap_or_else(PoisonError::into_inner);
        loaded.clone().unwrap_or_else(|| {
            let text = format!(
                "the module {} does not answer: it has not returned from its initialisation within {} seconds",
                self.file.path.display(),
                LOADING.as_secs()
            );
            Err(LoadFault::new(Part::Module, text))
        })
    }
}

/// Ends all modules before the process ends, and waits for at most this time. True if there is one: then the process must end without the
/// destructors of libraries, since threads of a module may still run.
pub(crate) fn end(within: Duration) -> bool {
    let loads = lock(&LOADS).clone();
    let is_any = !loads.is_empty();
    if is_any {
        let (ended, waits) = sync_channel(1);
        let ends = move || {
            for load in loads {
                let loaded = lock(&load.loaded).clone();
                if let Some(Ok(module)) = loaded {
                    module.end();
                }
            }
            let _ = ended.send(());
        };
        if spawn(ends).is_ok() {
            let _ = waits.recv_timeout(within);
        }
    }
    is_any
}

/// Starts a thread of this crate.
pub(crate) fn spawn(work: impl FnOnce() + Send + 'static) -> Result<(), LoadFault> {
    let thread = thread::Builder::new().name("hsm".to_owned()).spawn(work);
    let fault = |error| LoadFault::outage(format!("the system gives no thread: {error}"));
    thread.map(drop).map_err(fault)
}

/// The library. It is never dropped, so that it stays loaded.
#[derive(Debug)]
struct Library {
    context: Pkcs11,
    has_ended: bool,
}

/// A login that is not tried again: the label of the token, and the fingerprint of the PIN.
type Attempt = (String, u64);

/// A module.
#[derive(Debug)]
pub(crate) struct Module {
    /// A call reads it; initialising it again, and its end, write it.
    library: RwLock<Library>,
    /// Of a library that takes one call at a time: whose turn it is. Locked before `library`.
    turn: Option<Mutex<()>>,
    /// The logins that failed, or may have failed, for their PIN. Locked during a login, so that a wrong PIN is tried once.
    spent: Mutex<BTreeMap<Attempt, LoadFault>>,
    /// The states of the keys in use.
    states: Mutex<Vec<Weak<State>>>,
}

impl Module {
    /// The module of this path, loaded and initialised.
    pub(crate) fn load(path: &Path) -> Result<Arc<Self>, LoadFault> {
        let file = LibraryFile::find(path)?;
        let load = {
            let mut loads = lock(&LOADS);
            loads.retain(|load| !load.has_failed());
            let known = loads.iter().find(|load| load.file.is_same(&file));
            match known {
                Some(known) => Arc::clone(known),
                None => {
                    let load = Load::start(file)?;
                    loads.push(Arc::clone(&load));
                    load
                }
            }
        };
        load.wait()
    }

    fn new(file: &LibraryFile) -> Result<Self, LoadFault> {
        let fault = |error: Error| {
            let path = file.path.display();
            let text = format!(
                "{path} cannot be loaded as a PKCS#11 module: {}",
                shown(&error)
            );
            LoadFault::new(Part::Module, text)
        };
        let context = Pkcs11::new(&file.path).map_err(fault)?;
        initialize(&context).map_err(fault)?;
        Ok(Self {
            library: RwLock::new(Library {
                context,
                has_ended: false,
            }),
            turn: file.takes_one_call().then(Mutex::default),
            spent: Mutex::default(),
            states: Mutex::default(),
        })
    }

    /// Makes calls, during which the library stays initialised.
    pub(crate) fn call<T>(
        &self,
        calls: impl FnOnce(&Pkcs11) -> Result<T, LoadFault>,
    ) -> Result<T, LoadFault> {
        let _turn = self.turn.as_ref().map(lock);
        let library = self.library.read().unwrap_or_else(PoisonError::into_inner);
        match library.has_ended {
            true => Err(LoadFault::new(Part::Module, "the process ends")),
            false => calls(&library.context),
        }
    }

    /// Closes the idle sessions of a key that is not used any more.
    pub(crate) fn close_sessions(&self, state: &State) {
        let _ = self.call(|_| {
            state.close_sessions();
            Ok(())
        });
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
        let attempt = (key.token.clone(), key.pin.fingerprint());
        let mut spent = lock(&self.spent);
        if let Some(fault) = spent.get(&attempt) {
            return Err(fault.clone());
        }
        let pin = AuthPin::new(key.pin.text().to_owned().into());
        let Err(error) = session.login(UserType::User, Some(&pin)) else {
            return Ok(());
        };
        match LoadFault::of_login(error) {
            None => Ok(()),
            Some(fault) => {
                if fault.part == Part::Pin {
                    spent.insert(attempt, fault.clone());
                }
                Err(fault)
            }
        }
    }

    /// Initialises the library again, as a client of p11-kit needs after its server was started again, unless one of its keys can be used
    /// or a call still runs. True if it was done.
    pub(crate) fn initialize_again(&self) -> bool {
        let _turn = self.turn.as_ref().map(lock);
        let states = self.states();
        let mut usable = states.iter().filter(|state| state.fault().is_none());
        if let Some(usable) = usable.next() {
            // It may have been lost without a call that says so.
            usable.wake();
            return false;
        }
        let Ok(library) = self.library.try_write() else {
            return false;
        };
        if library.has_ended {
            return false;
        }
        for state in &states {
            state.close_sessions();
        }
        // An error says that it is not initialised, or that its server is away: either way it is initialised next.
        let _ = library.context.clone().finalize();
        initialize(&library.context).is_ok()
    }

    /// Waits for the calls that run, closes the sessions and finalises the library. Every later call fails.
    fn end(&self) {
        let states = self.states();
        for state in &states {
            state.close();
        }
        let mut library = self.library.write().unwrap_or_else(PoisonError::into_inner);
        for state in &states {
            state.close_sessions();
        }
        library.has_ended = true;
        let _ = library.context.clone().finalize();
    }
}

fn initialize(context: &Pkcs11) -> Result<(), Error> {
    use cryptoki::error::RvError::CryptokiAlreadyInitialized;
    match context.initialize(CInitializeArgs::new(CInitializeFlags::OS_LOCKING_OK)) {
        Err(Error::Pkcs11(CryptokiAlreadyInitialized, _)) => Ok(()),
        other => other,
    }
}
