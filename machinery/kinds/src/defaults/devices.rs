//! Claims to devices, their templates and slices; and requests for certificates, which have next to none.

use crate::access::{Object, each, make, set, set_nonzero, set_text, text, with};

/// A ResourceClaim.
pub(super) fn claim(object: &mut Object) {
    with(object, "spec", requests);
    make(object, "status", |_| {});
}

/// A ResourceClaimTemplate.
pub(super) fn claim_template(object: &mut Object) {
    make(object, "spec", |template| {
        make(template, "metadata", |_| {});
        with(template, "spec", requests);
    });
}

/// A ResourceSlice.
pub(super) fn slice(object: &mut Object) {
    with(object, "spec", |spec| {
        with(spec, "pool", |pool| set(pool, "generation", 0));
    });
}

/// A CertificateSigningRequest.
pub(super) fn signing_request(object: &mut Object) {
    make(object, "status", |_| {});
}

fn requests(spec: &mut Object) {
    with(spec, "devices", |devices| {
        each(devices, "requests", |request| {
            with(request, "exactly", count);
            each(request, "firstAvailable", count);
        });
    });
}

fn count(request: &mut Object) {
    set_text(request, "allocationMode", "ExactCount");
    if request.get("allocationMode").map(text) == Some("ExactCount") {
        set_nonzero(request, "count", 1);
    }
}
