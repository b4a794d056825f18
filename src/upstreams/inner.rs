//! The names and addresses by which only the bank's network knows the core (FWD-7): those of every group, because a core may name any of
//! them, and the addresses of names as they are now.

use arc_swap::{ArcSwap, Guard};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Those of all groups in use, also of a configuration that requests still end with.
#[derive(Default)]
pub(super) struct InnerNames {
    by_group: Mutex<Vec<Arc<Vec<String>>>>,
    all: ArcSwap<Vec<String>>,
}

/// The part of one group, which ends with it.
pub(super) struct GroupNames {
    own: Mutex<Arc<Vec<String>>>,
    all: Arc<InnerNames>,
}

impl InnerNames {
    fn replace(&self, before: &Arc<Vec<String>>, now: Option<&Arc<Vec<String>>>) {
        let mut by_group = self.by_group.lock().unwrap_or_else(PoisonError::into_inner);
        by_group.retain(|names| !Arc::ptr_eq(names, before));
        by_group.extend(now.cloned());
        let names = by_group.iter().flat_map(|names| names.iter().cloned());
        let mut names: Vec<_> = names.collect();
        names.sort_unstable();
        names.dedup();
        self.all.store(Arc::new(names));
    }
}

impl GroupNames {
    pub(super) fn new(all: &Arc<InnerNames>) -> Self {
        Self {
            own: Mutex::default(),
            all: Arc::clone(all),
        }
    }

    /// Replaces those of the group.
    pub(super) fn set(&self, names: Vec<String>) {
        let mut own = self.own();
        if **own != names {
            let now = Arc::new(names);
            let before = std::mem::replace(&mut *own, Arc::clone(&now));
            self.all.replace(&before, Some(&now));
        }
    }

    /// Those of all groups.
    pub(super) fn all(&self) -> Guard<Arc<Vec<String>>> {
        self.all.all.load()
    }

    fn own(&self) -> MutexGuard<'_, Arc<Vec<String>>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for GroupNames {
    fn drop(&mut self) {
        self.all.replace(&self.own(), None);
    }
}
