//! Addresses that are given out once.

use std::collections::HashSet;
use std::net::Ipv4Addr;

/// How many addresses there are; the first and the last of the network are left alone.
const COUNT: u32 = 65_534;

/// A network of addresses, some of them taken.
#[derive(Debug)]
pub(super) struct Addresses {
    network: u32,
    /// Where the search begins: after the last one taken, so that an address that was given back rests a while.
    next: u32,
    taken: HashSet<u32>,
}

impl Addresses {
    pub(super) fn new(network: Ipv4Addr) -> Self {
        Self {
            network: u32::from(network),
            next: 0,
            taken: HashSet::new(),
        }
    }

    /// An address that nobody has; when all are taken, one that somebody has.
    pub(super) fn free(&self) -> String {
        let candidates = (0..COUNT).map(|i| (self.next + i) % COUNT);
        let free = candidates
            .into_iter()
            .find(|i| !self.taken.contains(i))
            .unwrap_or(self.next % COUNT);
        Ipv4Addr::from(self.network.wrapping_add(free + 1)).to_string()
    }

    /// Notes that an address is taken. One of another network, or none, is none of ours.
    pub(super) fn take(&mut self, address: &str) -> Option<u32> {
        let address: Ipv4Addr = address.parse().ok()?;
        let number = u32::from(address).checked_sub(self.network)?.checked_sub(1)?;
        if number >= COUNT || !self.taken.insert(number) {
            return None;
        }
        self.next = (number + 1) % COUNT;
        Some(number)
    }

    pub(super) fn give_back(&mut self, number: u32) {
        self.taken.remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_given_once() {
        let mut pool = Addresses::new(Ipv4Addr::new(10, 0, 0, 0));
        assert_eq!(pool.free(), "10.0.0.1");
        let first = pool.take("10.0.0.1").expect("it was free");
        assert_eq!(pool.take("10.0.0.1"), None);
        assert_eq!(pool.take("192.168.0.1"), None);
        assert_eq!(pool.free(), "10.0.0.2");
        pool.give_back(first);
        // It rests until the others had their turn.
        assert_eq!(pool.free(), "10.0.0.2");
        assert_eq!(pool.take("10.0.255.254"), Some(COUNT - 1));
        assert_eq!(pool.free(), "10.0.0.1");
    }
}
