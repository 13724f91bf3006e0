//! How a member behaves as a whole.

use std::net::Ipv4Addr;
use std::time::Duration;

/// How a simulated member behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// How long a container takes to start, and to stop.
    pub delay: Duration,
    /// Whether workloads make Pods. Without, a workload gets its final status directly after the delay: for big
    /// fleets.
    pub pods: bool,
    /// The machines.
    pub nodes: NodeOptions,
    /// How long a container that exited rests before its first restart; the rest doubles each time, up to five
    /// minutes. Also the first rest between the attempts of a Job.
    pub backoff: Duration,
    /// How long a container whose behaviour is `crash` runs.
    pub crash_after: Duration,
    /// The first address of Pods; there are 65,534.
    pub pod_network: Ipv4Addr,
    /// The first address of load balancers; there are 65,534.
    pub balancer_network: Ipv4Addr,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(1),
            pods: true,
            nodes: NodeOptions::default(),
            backoff: Duration::from_secs(10),
            crash_after: Duration::from_secs(10),
            pod_network: Ipv4Addr::new(10, 244, 0, 0),
            balancer_network: Ipv4Addr::new(172, 18, 0, 0),
        }
    }
}

/// The machines of a member, all alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeOptions {
    /// How many there are.
    pub count: usize,
    /// What their names begin with; a number follows.
    pub prefix: String,
    /// How many processors each has, as a quantity.
    pub cpu: String,
    /// How much memory each has, as a quantity.
    pub memory: String,
    /// How many Pods each runs.
    pub pods: u32,
    /// Labels that each has beside the usual ones.
    pub labels: Vec<(String, String)>,
}

impl Default for NodeOptions {
    fn default() -> Self {
        Self {
            count: 2,
            prefix: "node-".to_owned(),
            cpu: "8".to_owned(),
            memory: "32Gi".to_owned(),
            pods: 110,
            labels: Vec::new(),
        }
    }
}
