//! What a person does with a fleet, from nothing to nothing.

use std::path::Path;

use serde_json::{Value, json};

use crate::api::{Api, bindings, deployment, deployments, has, policies, policy, until, works};
use crate::control::{Controller, install, join_all};
use crate::servers::Servers;

const WEB: &str = "/apis/apps/v1/namespaces/shop/deployments/web";
const WEB_POLICY: &str = "/apis/policy.karmada.io/v1alpha1/namespaces/shop/propagationpolicies/web";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn first_steps_and_what_follows() {
    let _alone = crate::ALONE.lock().await;
    let Some(servers) = Servers::start(3) else { return };
    let fleet = Fleet {
        hub: servers.api("hub").await,
        members: [
            servers.api("member1").await,
            servers.api("member2").await,
            servers.api("member3").await,
        ],
        servers,
    };
    install(&fleet.servers);
    install(&fleet.servers);
    let mut controller = Controller::start(&fleet.servers, "one", &[]);
    join_all(&fleet.servers).await;

    fleet.propagates().await;
    fleet.reports_back().await;
    fleet.corrects().await;
    fleet.leaves_strangers_alone().await;
    fleet.survives_an_outage().await;
    fleet.moves_new_first().await;
    controller = fleet.restarts_without_a_word(controller).await;
    fleet.deletes().await;

    controller.signal("-TERM").await;
    assert_eq!(controller.ended().await, Some(0));
}

struct Fleet {
    servers: Servers,
    hub: Api,
    members: [Api; 3],
}

impl Fleet {
    async fn propagates(&self) {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/first-steps.yaml");
        self.servers
            .kubectl("hub", &["apply", "-f", example.to_str().unwrap()], "");
        for member in &self.members[..2] {
            until("the Deployment is there", async || {
                member.get(WEB).await.is_some()
            })
            .await;
        }
        until("the namespace is everywhere", async || {
            self.members[2].get("/api/v1/namespaces/shop").await.is_some()
        })
        .await;
        assert!(
            self.members[2].get(WEB).await.is_none(),
            "the policy does not name member3"
        );

        let copy = self.members[0].get(WEB).await.unwrap();
        let metadata = &copy["metadata"];
        assert_eq!(metadata["labels"]["karmada.io/managed"], "true");
        assert_eq!(metadata["labels"]["app"], "web");
        let id = &metadata["labels"]["work.karmada.io/permanent-id"];
        assert!(id.is_string(), "{metadata:#}");
        let annotations = &metadata["annotations"];
        assert_eq!(annotations["work.karmada.io/namespace"], "karmada-es-member1");
        let template = self.hub.get(WEB).await.unwrap();
        assert_eq!(
            annotations["resourcetemplate.karmada.io/uid"],
            template["metadata"]["uid"]
        );
        assert_eq!(copy["spec"]["replicas"], 2);
        let claim = &template["metadata"]["labels"]["propagationpolicy.karmada.io/permanent-id"];
        assert!(claim.is_string(), "{template:#}");

        until("the binding says that all is applied", async || {
            let binding = self
                .hub
                .get(&format!("{}/web-deployment", bindings("shop")))
                .await;
            binding.is_some_and(|binding| {
                has(&binding, "Scheduled", "True") && has(&binding, "FullyApplied", "True")
            })
        })
        .await;
        let name = annotations["work.karmada.io/name"].as_str().unwrap();
        let work = self
            .hub
            .get(&format!("{}/{name}", works("member1")))
            .await
            .unwrap();
        assert!(
            has(&work, "Applied", "True") && has(&work, "Dispatching", "True"),
            "{work:#}"
        );
        assert_eq!(work["metadata"]["labels"]["work.karmada.io/permanent-id"], *id);
    }

    /// Nothing makes replicas here, so that the test says that they are ready.
    async fn reports_back(&self) {
        for member in &self.members[..2] {
            member.merge(&format!("{WEB}/status"), &ready(member).await).await;
        }
        until("the template tells what its copies are", async || {
            let status = &self.hub.get(WEB).await.unwrap()["status"];
            status["readyReplicas"] == 2 && status["availableReplicas"] == 2
        })
        .await;
        let template = self.hub.get(WEB).await.unwrap();
        assert_eq!(
            template["status"]["observedGeneration"],
            template["metadata"]["generation"]
        );
        until("the binding tells that they are healthy", async || {
            let binding = self
                .hub
                .get(&format!("{}/web-deployment", bindings("shop")))
                .await
                .unwrap();
            let items = binding["status"]["aggregatedStatus"]
                .as_array()
                .cloned()
                .unwrap_or_default();
            items.len() == 2
                && items
                    .iter()
                    .all(|item| item["health"] == "Healthy" && item["applied"] == true)
        })
        .await;
    }

    async fn corrects(&self) {
        let [member, ..] = &self.members;
        let path = "/spec/template/spec/containers/0/image";
        member.merge(WEB, &image("nginx:wrong")).await;
        until("the image is what it was", async || {
            member.get(WEB).await.unwrap().pointer(path) == Some(&json!("nginx:1.27"))
        })
        .await;
        let id = member.get(WEB).await.unwrap()["metadata"]["labels"]["work.karmada.io/permanent-id"].clone();
        member
            .merge(
                WEB,
                &json!({"metadata": {"labels": {"work.karmada.io/permanent-id": null}}}),
            )
            .await;
        until("the marks are what they were", async || {
            member.get(WEB).await.unwrap()["metadata"]["labels"]["work.karmada.io/permanent-id"] == id
        })
        .await;
        let uid = member.get(WEB).await.unwrap()["metadata"]["uid"].clone();
        member.delete(WEB).await;
        until("it is made again", async || {
            member
                .get(WEB)
                .await
                .is_some_and(|copy| copy["metadata"]["uid"] != uid)
        })
        .await;
    }

    /// An object that is there already is not taken over unless the policy says so.
    async fn leaves_strangers_alone(&self) {
        let [first, second, _] = &self.members;
        let mut theirs = deployment("shop", "taken", &json!({"group": "taken"}));
        theirs["spec"]["template"]["spec"]["containers"][0]["image"] = json!("theirs:1");
        let theirs = second.create(&deployments("shop"), &theirs).await;
        let path = format!("{}/taken", deployments("shop"));
        self.hub
            .create(
                &policies("shop"),
                &policy("shop", "taken", &["member1", "member2"]),
            )
            .await;
        self.hub
            .create(
                &deployments("shop"),
                &deployment("shop", "taken", &json!({"group": "taken"})),
            )
            .await;
        until("the other member has it", async || {
            first.get(&path).await.is_some()
        })
        .await;
        let mut refused = Value::Null;
        until("its Work says that it was refused", async || {
            let works = self.hub.list(&works("member2")).await;
            let of = |work: &&Value| work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "taken";
            refused = works.iter().find(of).cloned().unwrap_or_default();
            has(&refused, "Applied", "False")
        })
        .await;
        let conditions = refused["status"]["conditions"].as_array().unwrap();
        let applied = conditions.iter().find(|c| c["type"] == "Applied").unwrap();
        assert_eq!(applied["reason"], "AppliedFailed");
        until("its binding says so too", async || {
            let binding = self
                .hub
                .get(&format!("{}/taken-deployment", bindings("shop")))
                .await
                .unwrap();
            has(&binding, "FullyApplied", "False")
        })
        .await;
        let now = second.get(&path).await.unwrap();
        assert_eq!(
            now["metadata"]["resourceVersion"], theirs["metadata"]["resourceVersion"],
            "it was touched"
        );

        self.hub
            .merge(
                &format!("{}/taken", policies("shop")),
                &json!({"spec": {"conflictResolution": "Overwrite"}}),
            )
            .await;
        until("it is taken over when the policy says so", async || {
            let now = second.get(&path).await.unwrap();
            now["metadata"]["labels"]["karmada.io/managed"] == "true"
        })
        .await;
        self.hub.delete(&path).await;
        for member in [first, second] {
            until("it goes with its template", async || {
                member.get(&path).await.is_none()
            })
            .await;
        }
    }

    async fn survives_an_outage(&self) {
        let [first, second, third] = &self.members;
        self.hub
            .merge(WEB_POLICY, &clusters(&["member1", "member2", "member3"]))
            .await;
        until("all three have it", async || third.get(WEB).await.is_some()).await;
        self.servers.stop("member3");
        self.hub.merge(WEB, &image("nginx:1.28")).await;
        let path = "/spec/template/spec/containers/0/image";
        for member in [first, second] {
            until("the others are served meanwhile", async || {
                member.get(WEB).await.unwrap().pointer(path) == Some(&json!("nginx:1.28"))
            })
            .await;
        }
        until("the cluster is said to be down", async || {
            let cluster = self
                .hub
                .get("/apis/cluster.karmada.io/v1alpha1/clusters/member3")
                .await
                .unwrap();
            !has(&cluster, "Ready", "True")
        })
        .await;
        self.servers.start_again();
        until("the member gets what it missed", async || {
            let copy = third.get(WEB).await;
            copy.is_some_and(|copy| copy.pointer(path) == Some(&json!("nginx:1.28")))
        })
        .await;
        until("the cluster is well again", async || {
            let cluster = self
                .hub
                .get("/apis/cluster.karmada.io/v1alpha1/clusters/member3")
                .await
                .unwrap();
            has(&cluster, "Ready", "True") && cluster["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
        })
        .await;
    }

    /// From member1 and member2 to member3, which cannot be reached at first: nothing is removed until the copy is there.
    async fn moves_new_first(&self) {
        let [first, second, third] = &self.members;
        self.hub
            .merge(WEB_POLICY, &clusters(&["member1", "member2"]))
            .await;
        until("member3 has lost it", async || third.get(WEB).await.is_none()).await;
        let deleted = |name: &str| {
            let audit = self.servers.audit(name);
            audit
                .iter()
                .filter(|a| a.verb == "delete" && a.name == "web" && a.resource == "deployments")
                .count()
        };
        let before = [deleted("member1"), deleted("member2")];
        self.servers.stop("member3");
        self.hub.merge(WEB_POLICY, &clusters(&["member3"])).await;
        until("the Work is there", async || {
            let works = self.hub.list(&works("member3")).await;
            works
                .iter()
                .any(|work| work["spec"]["workload"]["manifests"][0]["metadata"]["name"] == "web")
        })
        .await;
        for member in [first, second] {
            assert!(
                member.get(WEB).await.is_some(),
                "it was removed before its successor was there"
            );
        }
        assert_eq!([deleted("member1"), deleted("member2")], before);
        self.servers.start_again();
        for member in [first, second] {
            until("the old copy goes", async || member.get(WEB).await.is_none()).await;
            assert!(
                third.get(WEB).await.is_some(),
                "it was removed before its successor was there"
            );
        }
        until("the Works are gone too", async || {
            let mut all = self.hub.list(&works("member1")).await;
            all.retain(|work| work["spec"]["workload"]["manifests"][0]["kind"] == "Deployment");
            all.is_empty()
        })
        .await;
    }

    /// A fleet at rest is not written to by a new process.
    async fn restarts_without_a_word(&self, mut old: Controller) -> Controller {
        old.signal("-TERM").await;
        assert_eq!(old.ended().await, Some(0));
        let ours = |name: &&str| {
            let mut asked = self.servers.audit(name);
            // The lease, and what people read, are no part of the fleet's state; nor is what servers write for themselves.
            asked.retain(|asked| !["leases", "events"].contains(&asked.resource.as_str()));
            asked.retain(|asked| !asked.user.starts_with("system:apiserver"));
            asked
        };
        let names = ["hub", "member1", "member2", "member3"];
        let before: Vec<usize> = names.iter().map(|name| ours(name).len()).collect();
        let new = Controller::start(&self.servers, "two", &[]);
        // What comes after everything that the start could have caused: a new template reaches its member.
        let path = format!("{}/after", deployments("shop"));
        self.hub
            .create(&policies("shop"), &policy("shop", "after", &["member2"]))
            .await;
        self.hub
            .create(
                &deployments("shop"),
                &deployment("shop", "after", &json!({"group": "after"})),
            )
            .await;
        until("the new one works", async || {
            self.members[1].get(&path).await.is_some()
        })
        .await;
        self.hub.delete(&path).await;
        until("and removes", async || self.members[1].get(&path).await.is_none()).await;
        let written: Vec<_> = names
            .iter()
            .zip(before)
            .flat_map(|(name, before)| ours(name).split_off(before))
            .filter(|asked| !asked.name.contains("after"))
            .collect();
        assert_eq!(written, [], "a restart wrote to a fleet that was at rest");
        new
    }

    async fn deletes(&self) {
        self.hub.delete(WEB).await;
        until("the copy goes", async || self.members[2].get(WEB).await.is_none()).await;
        until("the binding goes", async || {
            self.hub.list(&bindings("shop")).await.is_empty()
        })
        .await;
        until("no Work is left but the namespaces'", async || {
            let mut all = self.hub.list("/apis/work.karmada.io/v1alpha1/works").await;
            all.retain(|work| work["spec"]["workload"]["manifests"][0]["kind"] != "Namespace");
            all.is_empty()
        })
        .await;
    }
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "web", "image": name}]}}}})
}

fn clusters(names: &[&str]) -> Value {
    json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": names}}}})
}

/// What the Deployment controller would say.
async fn ready(member: &Api) -> Value {
    let copy = member.get(WEB).await.unwrap();
    json!({"status": {
        "observedGeneration": copy["metadata"]["generation"],
        "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
        "conditions": [{
            "type": "Available", "status": "True", "reason": "MinimumReplicasAvailable",
            "message": "Deployment has minimum availability.",
            "lastUpdateTime": "2026-01-01T00:00:00Z", "lastTransitionTime": "2026-01-01T00:00:00Z",
        }],
    }})
}
