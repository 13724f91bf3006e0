//! Discovery, in both forms.

use lockgate_hub::{Link, Resource, discover};
use machinery_auth::UserInfo;
use tower::ServiceBuilder;
use tower::util::MapRequestLayer;

use crate::faults::{Fault, Faults};
use crate::harness::{Server, admin};

both!(kinds_are_found);

async fn kinds_are_found(server: Server) {
    check(&server.link).await;
}

/// What must hold of every server.
pub(crate) async fn check(link: &Link) {
    let found = discover(link).await.unwrap();
    assert_eq!(found.unknown(), []);
    let deployments = found.get("apps/v1", "Deployment").unwrap();
    assert_eq!(
        deployments.collection("n"),
        "/apis/apps/v1/namespaces/n/deployments"
    );
    assert!(deployments.can("watch") && deployments.can("delete") && !deployments.can("fly"));
    for known in [
        Resource::namespaces(),
        Resource::secrets(),
        Resource::leases(),
        Resource::crds(),
        Resource::events(),
    ] {
        let mut served = found.get(&known.api_version(), &known.kind).unwrap().clone();
        served.verbs.clear();
        assert_eq!(served, known);
    }
    assert!(found.get("apps/v9", "Deployment").is_none() && !found.may_exist("apps/v9", "Deployment"));
    assert!(
        found
            .all()
            .all(|resource| !resource.plural.contains('/') && !resource.kind.is_empty())
    );
    let scalers: Vec<_> = found
        .preferred()
        .filter(|resource| resource.kind == "HorizontalPodAutoscaler")
        .map(Resource::api_version)
        .collect();
    assert_eq!(scalers, ["autoscaling/v2"], "one version of each kind");
    let events = found
        .preferred()
        .filter(|resource| resource.kind == "Event")
        .count();
    assert_eq!(events, 2, "one of each group");
}

/// A link to a server that does not know the aggregated form.
fn old(server: &Server, faults: &Faults) -> Link {
    let forget = MapRequestLayer::new(|mut request: http::Request<kube::client::Body>| {
        let json = http::HeaderValue::from_static("application/json");
        request.headers_mut().insert(http::header::ACCEPT, json);
        request
    });
    let user: UserInfo = admin();
    let service = ServiceBuilder::new()
        .layer(forget)
        .service(faults.on(server.server.as_user(user)));
    Link::new(kube::Client::new(service, "default"))
}

#[tokio::test]
async fn both_forms_say_the_same() {
    let server = Server::in_process(|_| {}).await;
    let faults = Faults::default();
    let old = old(&server, &faults);
    check(&old).await;
    let (new, old) = (
        discover(&server.link).await.unwrap(),
        discover(&old).await.unwrap(),
    );
    assert!(new.all().eq(old.all()));
    assert!(new.preferred().eq(old.preferred()));
    assert!(faults.asked("/apis/apps/v1").len() == 2 && new.all().count() > 40);
}

#[tokio::test]
async fn a_group_that_fails_is_unknown_and_not_absent() {
    let server = Server::in_process(|_| {}).await;
    let faults = Faults::default();
    faults.next("/apis/apps/v1", Fault::status(503, "ServiceUnavailable"));
    let found = discover(&old(&server, &faults)).await.unwrap();
    let [unknown] = found.unknown() else {
        panic!("{:?}", found.unknown());
    };
    assert_eq!((unknown.group.as_str(), unknown.version.as_str()), ("apps", "v1"));
    assert!(found.get("apps/v1", "Deployment").is_none());
    assert!(found.may_exist("apps/v1", "Deployment"));
    assert!(found.get("v1", "Pod").is_some());

    let (link, faults) = server.faulty();
    let stale = serde_json::json!({"kind": "APIGroupDiscoveryList", "items": [
        {"metadata": {"name": "it.example.org"}, "versions": [{"version": "v1", "freshness": "Stale"}]}]});
    faults.next("GET /apis", Fault::Answer(200, stale.to_string(), None));
    let found = discover(&link).await.unwrap();
    assert!(found.may_exist("it.example.org/v1", "Widget") && found.get("v1", "Pod").is_some());

    for path in ["GET /api", "GET /apis", "/api/v1"] {
        let faults = Faults::default();
        faults.next(path, Fault::status(500, "InternalError"));
        assert!(discover(&self::old(&server, &faults)).await.is_err(), "{path}");
    }
}
