//! Leases as leader election uses them: kube has no helper for it, so a small elector stands in.

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, PostParams};

use crate::harness::{Cluster, refusal};

both!(
    a_lease_is_held_renewed_and_taken_over,
    of_many_only_one_leads,
    times_keep_their_microseconds,
);

const TERM: SignedDuration = SignedDuration::from_secs(15);

/// Takes or renews the lease if it may be had at `now`.
async fn elect(api: &Api<Lease>, me: &str, now: Timestamp) -> kube::Result<bool> {
    let spec = |acquired: Timestamp, transitions: i32| LeaseSpec {
        holder_identity: Some(me.into()),
        lease_duration_seconds: Some(15),
        acquire_time: Some(MicroTime(acquired)),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions),
        ..LeaseSpec::default()
    };
    let Some(mut lease) = api.get_opt("leader").await? else {
        let mut lease = Lease::default();
        lease.metadata.name = Some("leader".into());
        lease.spec = Some(spec(now, 0));
        return won(api.create(&PostParams::default(), &lease).await);
    };
    let held = lease.spec.clone().unwrap_or_default();
    let expired = held
        .renew_time
        .as_ref()
        .is_none_or(|renewed| renewed.0 + TERM < now);
    let transitions = held.lease_transitions.unwrap_or(0);
    lease.spec = match held.holder_identity.as_deref() {
        Some(holder) if holder == me => Some(spec(held.acquire_time.map_or(now, |t| t.0), transitions)),
        _ if expired => Some(spec(now, transitions + 1)),
        _ => return Ok(false),
    };
    won(api.replace("leader", &PostParams::default(), &lease).await)
}

/// Whoever loses a race is no leader; anything else is an error.
fn won(result: kube::Result<Lease>) -> kube::Result<bool> {
    match result {
        Ok(_) => Ok(true),
        Err(kube::Error::Api(status)) if status.is_conflict() || status.is_already_exists() => Ok(false),
        Err(other) => Err(other),
    }
}

async fn a_lease_is_held_renewed_and_taken_over(cluster: Cluster) {
    let api: Api<Lease> = Api::default_namespaced(cluster.client.clone());
    let start = Timestamp::now();
    let at = |seconds: i64| start + SignedDuration::from_secs(seconds);
    for (who, seconds, leads, transitions) in [
        ("a", 0, true, 0),
        ("b", 10, false, 0),
        ("a", 14, true, 0),
        ("b", 20, false, 0),
        ("b", 30, true, 1),
        ("a", 31, false, 1),
    ] {
        assert_eq!(
            elect(&api, who, at(seconds)).await.unwrap(),
            leads,
            "{who} at {seconds}"
        );
        let spec = api.get("leader").await.unwrap().spec.unwrap();
        assert_eq!(spec.lease_transitions, Some(transitions), "{who} at {seconds}");
    }
    // A renewal with a version that is past is refused: its holder has lost the lease meanwhile.
    let mut stale = api.get("leader").await.unwrap();
    assert!(elect(&api, "b", at(32)).await.unwrap());
    stale.spec.as_mut().unwrap().holder_identity = Some("a".into());
    let status = refusal(api.replace("leader", &PostParams::default(), &stale).await);
    assert!(status.is_conflict());
    assert!(
        status.message.contains("the object has been modified"),
        "{}",
        status.message
    );
    let holder = api.get("leader").await.unwrap().spec.unwrap().holder_identity;
    assert_eq!(holder.as_deref(), Some("b"));
}

async fn of_many_only_one_leads(cluster: Cluster) {
    let api: Api<Lease> = Api::default_namespaced(cluster.client.clone());
    let start = Timestamp::now();
    for round in 0..5 {
        // Every round begins when the former leader's term is over.
        let now = start + SignedDuration::from_secs(round * 60);
        let candidates = (0..10).map(|n| {
            let api = api.clone();
            async move { elect(&api, &format!("c{round}-{n}"), now).await.unwrap() }
        });
        let leaders = futures::future::join_all(candidates).await;
        assert_eq!(leaders.iter().filter(|leads| **leads).count(), 1, "round {round}");
    }
}

async fn times_keep_their_microseconds(cluster: Cluster) {
    let api: Api<Lease> = Api::default_namespaced(cluster.client.clone());
    for (name, micros) in [("a", 1_700_000_000_123_456), ("b", 1_700_000_000_000_000)] {
        let time = MicroTime(Timestamp::from_microsecond(micros).unwrap());
        let mut lease = Lease::default();
        lease.metadata.name = Some(name.into());
        lease.spec = Some(LeaseSpec {
            renew_time: Some(time.clone()),
            ..LeaseSpec::default()
        });
        let made = api.create(&PostParams::default(), &lease).await.unwrap();
        assert_eq!(made.spec.as_ref().unwrap().renew_time, Some(time));
        let again = api.replace(name, &PostParams::default(), &made).await.unwrap();
        assert_eq!(again.resource_version(), made.resource_version());
    }
}
