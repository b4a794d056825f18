//! How a model is explored, and what it prints: the number of its states, or what finds a planted fault.

use portvakt_base::clock::Stopwatch;
use stateright::{Checker, HasDiscoveries, Model};
use std::{fmt::Debug, hash::Hash};

/// Explores every state of a model, and says how many there are.
pub(crate) fn explore<M>(name: &str, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let watch = Stopwatch::start();
    let checker = model.checker().spawn_dfs().join();
    println!(
        "model {name}: {} states, {} steps, {} deep, {:.1} s",
        checker.unique_state_count(),
        checker.state_count(),
        checker.max_depth(),
        watch.elapsed().as_secs_f64()
    );
    checker.assert_properties();
}

/// Explores a model with a planted fault until one of its properties fails, and says which.
pub(crate) fn finds<M, F: Debug>(fault: F, model: M)
where
    M: Model + Send + Sync + 'static,
    M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
    M::Action: Clone + Debug + PartialEq,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures);
    let checker = checker.spawn_bfs().join();
    let always = checker.model().properties().into_iter();
    let always = always.filter(|it| it.expectation == stateright::Expectation::Always);
    let found = always
        .map(|it| it.name)
        .find_map(|name| Some((name, checker.discovery(name)?)));
    let Some((name, path)) = found else {
        panic!("nothing finds {fault:?}");
    };
    let steps = path.into_actions();
    println!("fault {fault:?}: not \"{name}\" after {steps:?}");
}
