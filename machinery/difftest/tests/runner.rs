//! The runner against servers that answer whatever they are told to.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use machinery_difftest::{Credential, Options, Script, Step, Target, hunt, load_scripts, run};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that answers 201 to every POST and `answer` to every GET.
async fn serve(answer: &'static str) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let (status, body) = if request[..length].starts_with(b"GET") {
                    answer.split_once(' ').unwrap()
                } else {
                    ("201", "{}")
                };
                let head = "content-type: application/json\r\nconnection: close";
                let text = format!(
                    "HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(text.as_bytes()).await.ok();
            });
        }
    });
    Target {
        name: "t".to_owned(),
        base_url,
        ca_pem: None,
        credential: Credential::Anonymous,
    }
}

async fn check(left: &'static str, right: &'static str, steps: &[Step], expected: &[&str]) {
    let script = Script {
        name: "s".to_owned(),
        steps: steps.to_vec(),
        ..Script::default()
    };
    let options = Options {
        run: "x".to_owned(),
        transcript: false,
    };
    let (left, right) = (serve(left).await, serve(right).await);
    let report = run(&left, &right, &[script], &options).await.unwrap().to_string();
    for line in expected {
        assert!(report.contains(line), "{line:?} is not in\n{report}");
    }
}

fn step(request: &str) -> Step {
    Step {
        request: request.to_owned(),
        ..Step::default()
    }
}

#[tokio::test]
async fn what_is_alike_is_clean() {
    let now = "200 {\"metadata\":{\"name\":\"a\",\"uid\":\"6cecfe78-f478-4bb3-9d72-aef090c2186d\",\"resourceVersion\":\"7\"}}";
    let then = "200 {\"metadata\":{\"name\":\"a\",\"uid\":\"00b26557-f74f-44a3-a967-e0206747a51a\",\"resourceVersion\":\"12\"}}";
    check(
        now,
        then,
        &[step("GET /x -> 200")],
        &["1 exchanges", "0 steps in 0 scripts differ, 0 could not run"],
    )
    .await;
}

#[tokio::test]
async fn what_differs_is_told_with_its_path() {
    let steps = [step("GET /x")];
    check(
        "200 {\"a\":{\"b\":1}}",
        "404 {\"a\":{\"b\":2},\"c\":0}",
        &steps,
        &[
            "s step 1: GET /x",
            "status: 200 | 404",
            ".a.b: 1 | 2",
            ".c: (absent) | 0",
            "1 steps in 1 scripts differ",
        ],
    )
    .await;
}

#[tokio::test]
async fn agreement_on_the_wrong_answer_is_a_failure() {
    let steps = [step("GET /x -> 200")];
    check(
        "404 {}",
        "404 {}",
        &steps,
        &[
            "answered 404, the script expects 200",
            "1 steps in 1 scripts differ",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_script_stops_where_it_lacks_a_value() {
    let capture = Step {
        capture: [("n".to_owned(), "/n".to_owned())].into(),
        ..step("GET /x -> 200")
    };
    let steps = [capture, step("GET /<n> -> 200"), step("GET /y -> 200")];
    check(
        "200 {\"n\":\"v\"}",
        "200 {}",
        &steps,
        &["nothing at /n to remember as <n>", "2 could not run"],
    )
    .await;
}

#[tokio::test]
async fn what_differs_is_made_small_and_kept() {
    let (left, right) = (serve("200 {\"a\":1}").await, serve("200 {\"a\":2}").await);
    let steps = ["POST /x", "POST /y", "POST /z", "GET /x", "GET /y"].map(step);
    let scripts = [Script {
        name: "s".to_owned(),
        steps: steps.to_vec(),
        ..Script::default()
    }];
    let options = Options {
        run: "x".to_owned(),
        transcript: false,
    };
    let report = run(&left, &right, &scripts, &options).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let found = hunt::condense((&left, &right), &scripts, &report, 3, folder.path())
        .await
        .unwrap();
    assert_eq!(found.len(), 1, "both steps show the same");
    let kept = load_scripts(folder.path()).unwrap();
    assert_eq!(kept[0].name, "s");
    let requests: Vec<&str> = kept[0].steps.iter().map(|step| step.request.as_str()).collect();
    assert_eq!(requests, ["GET /x"]);
    let none = hunt::condense((&left, &right), &scripts, &report, 0, folder.path()).await;
    assert!(none.unwrap().is_empty());
}
