//! Upper bounds on times: `make bounds`.

use super::{Duration, Protocol, Stopwatch, accounts, block, eventually_is, gateways, who};

/// CTL-2: a block holds at every gateway of the state within 100 ms.
//= CTL-2 refused
#[test]
#[ignore = "a bound on a time: make bounds"]
fn a_block_holds_at_the_other_gateway_within_100_ms() {
    let Some(([here, there], _data)) = gateways() else {
        return;
    };
    here.introduce(who(&here));
    for _ in 0..10 {
        eventually_is("the status", 200, || {
            there.send(&accounts(), Protocol::Http1).status
        });
        block(&here, "/tpp/block");
        let since = Stopwatch::start();
        loop {
            let began = since.elapsed();
            if there.send(&accounts(), Protocol::Http1).status == 403 {
                break println!("refused within {:?}", since.elapsed());
            }
            assert!(
                began <= Duration::from_millis(100),
                "served {began:?} later"
            );
        }
        block(&here, "/tpp/unblock");
    }
}
