//! What the compliance of single clusters comes to.

/// The compliance of all: the worst word that is said. Where a cluster has said nothing, only bad words are repeated.
pub fn overall_compliance<'a>(clusters: impl IntoIterator<Item = &'a str>) -> &'static str {
    let rank = |word: &str| match word {
        "Compliant" => 1,
        "" => 2,
        "Pending" => 3,
        _ => 4,
    };
    match clusters.into_iter().map(rank).max() {
        None | Some(2) => "",
        Some(1) => "Compliant",
        Some(3) => "Pending",
        Some(_) => "NonCompliant",
    }
}
