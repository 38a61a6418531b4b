//! Times that k8s-openapi's types can't hold.

use std::collections::BTreeSet;

use dra_attrs::{has_saturated_time, saturate_times};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, Time};
use k8s_openapi::jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

const LAST: &str = "9999-12-30T22:00:00Z";

/// Fields of type `Time` and `MicroTime` in k8s-openapi 0.29 with the types of 1.37, each with the types that have it,
/// then that of KEP-5677.
const TIMES: [(&str, &str); 33] = [
    ("acquireTime", "LeaseSpec"),
    ("allocationTimestamp", "AllocationResult"),
    ("beginRefreshAt", "PodCertificateRequestStatus"),
    ("completionTime", "JobStatus, ResponderStatus"),
    ("creationTimestamp", "ObjectMeta"),
    ("deletionTimestamp", "ObjectMeta"),
    ("deprecatedFirstTimestamp", "Event"),
    ("deprecatedLastTimestamp", "Event"),
    ("eventTime", "Event"),
    ("expectedCompletionTime", "ResponderStatus"),
    ("expirationTimestamp", "TokenRequestStatus"),
    ("finishedAt", "ContainerStateTerminated"),
    ("firstTimestamp", "Event"),
    ("heartbeatTime", "ResponderStatus"),
    ("lastHeartbeatTime", "NodeCondition"),
    ("lastObservedTime", "EventSeries"),
    ("lastPhaseTransitionTime", "PersistentVolumeStatus"),
    ("lastProbeTime", "JobCondition, PersistentVolumeClaimCondition, PodCondition"),
    ("lastScaleTime", "HorizontalPodAutoscalerStatus"),
    ("lastScheduleTime", "CronJobStatus"),
    ("lastSuccessfulTime", "CronJobStatus"),
    ("lastTimestamp", "Event"),
    ("lastTransitionTime", "Condition and all other conditions"),
    ("lastUpdateTime", "CertificateSigningRequestCondition, DeploymentCondition"),
    ("notAfter", "PodCertificateRequestStatus"),
    ("notBefore", "PodCertificateRequestStatus"),
    ("pingTime", "LeaseCandidateSpec"),
    ("renewTime", "LeaseCandidateSpec, LeaseSpec"),
    ("startTime", "JobStatus, PodStatus, ResponderStatus"),
    ("startedAt", "ContainerStateRunning, ContainerStateTerminated"),
    ("time", "ManagedFieldsEntry, VolumeError"),
    ("timeAdded", "DeviceTaint, Taint"),
    ("observationTime", "ResourcePoolStatusRequestStatus of the KEP"),
];

/// Maps of k8s-openapi whose keys users choose, and fields with JSON of any shape.
const USERS_OWN: &str = "allocatable allocatedResourceStatuses allocatedResources annotations attachmentMetadata \
    attestations attributes binaryData capacity consumedCapacity counters data default defaultRequest definitions \
    dependencies deprecatedTopology enum example extra fieldsV1 hard labels limits matchLabels max maxLimitRequestRatio \
    min nodeAllocatableResources nodeSelector options overhead parameters patternProperties podFixed properties requests \
    selector stringData unverifiedUserAnnotations used userAnnotations volumeAttributes";

fn saturated(text: &str) -> String {
    let mut object = json!({"time": text});
    saturate_times(&mut object);
    object["time"].as_str().unwrap().to_owned()
}

fn is_saturated(text: &str) -> bool {
    has_saturated_time(&json!({"time": text}))
}

#[test]
fn each_time_of_the_types_and_no_other_text() {
    assert_eq!(TIMES.iter().collect::<BTreeSet<_>>().len(), TIMES.len());
    for (field, _) in TIMES {
        let mut object =
            json!({"status": {"list": [{field: "9999-12-31T23:59:59Z", "message": "9999-12-31T23:59:59Z"}]}});
        assert!(has_saturated_time(&object), "{field}");
        assert_eq!(saturate_times(&mut object), 1, "{field}");
        assert_eq!(object, json!({"status": {"list": [{field: LAST, "message": "9999-12-31T23:59:59Z"}]}}));
        assert!(has_saturated_time(&object), "{field}");
    }
    let mut budget =
        json!({"status": {"disruptedPods": {"labels": "9999-12-31T00:00:00Z", "b": "2026-11-27T00:00:00Z"}}});
    assert_eq!(saturate_times(&mut budget), 1);
    assert_eq!(budget, json!({"status": {"disruptedPods": {"labels": LAST, "b": "2026-11-27T00:00:00Z"}}}));
}

#[test]
fn texts_of_users_stay() {
    for field in USERS_OWN.split_whitespace() {
        let below = json!({"time": "9999-12-31T23:59:59Z", "deeper": [{"timeAdded": "9999-12-31T23:59:59Z"}]});
        let mut object = json!({"spec": [{field: below}]});
        let before = object.clone();
        assert!(!has_saturated_time(&object), "{field}");
        assert_eq!(saturate_times(&mut object), 0, "{field}");
        assert_eq!(object, before);
    }
}

#[test]
fn ends_of_the_range() {
    let rows = [
        // (stored, read, at an end or beyond)
        ("9999-12-30T21:59:59.999999Z", "9999-12-30T21:59:59.999999Z", false),
        ("9999-12-30T22:00:00Z", "9999-12-30T22:00:00Z", true),
        ("9999-12-30T22:00:00.999999999Z", "9999-12-30T22:00:00.999999999Z", true),
        ("9999-12-30T22:00:01Z", LAST, true),
        ("9999-12-31T23:59:59Z", LAST, true),
        ("9999-12-31T23:59:59.999999Z", "9999-12-30T22:00:00.000000Z", true),
        ("9999-12-31T23:59:59,5Z", "9999-12-30T22:00:00.000000Z", true),
        ("9999-12-31T23:59:59-12:00", LAST, true),
        ("9999-12-31T09:59:59+12:00", "9999-12-31T09:59:59+12:00", false),
        ("9999-12-31T10:00:00+12:00", "9999-12-31T10:00:00+12:00", true),
        ("9999-12-31T10:00:01+12:00", LAST, true),
        ("9999-12-30T09:59:59-12:00", "9999-12-30T09:59:59-12:00", false),
        ("9999-12-30T10:00:01-12:00", LAST, true),
        // As Go writes what a client stored by protobuf, or with an offset, after year 9999 in UTC.
        ("10000-01-01T11:59:59Z", LAST, true),
        ("292277026596-12-04T15:30:07Z", LAST, true),
        ("10000-01-01T11:59:59.000001Z", "9999-12-30T22:00:00.000000Z", true),
        ("0000-01-01T00:00:01Z", "0000-01-01T00:00:01Z", false),
        ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00Z", true),
        ("0000-01-01T00:00:00+12:00", "0000-01-01T00:00:00Z", true),
        ("-0001-12-31T12:00:00Z", "0000-01-01T00:00:00Z", true),
        ("-292277022399-01-01T00:00:00.000000Z", "0000-01-01T00:00:00.000000Z", true),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", false),
        ("2026-11-27T00:00:00Z", "2026-11-27T00:00:00Z", false),
    ];
    for (stored, read, is_at_end) in rows {
        assert_eq!(saturated(stored), read, "{stored}");
        assert_eq!(is_saturated(stored), is_at_end, "{stored}");
        assert_eq!(is_saturated(read), is_at_end, "{stored}");
        assert!(serde_json::from_value::<Time>(json!(read)).is_ok(), "{stored}");
    }
}

#[test]
fn texts_that_are_no_times_stay_and_are_refused() {
    let texts = [
        "",
        "never",
        "9999",
        "9999-",
        "9999-12-31",
        "9999-12-31T23:59:59",
        "9999-13-31T00:00:00Z",
        "9999-12-32T00:00:00Z",
        "9999-12-31T25:00:00Z",
        "9999-12-31T23:60:00Z",
        "10000-02-30T00:00:00Z",
        "10000-01-01",
        "-",
        "--",
        "-0001-",
        "12-31",
        "٩٩٩٩-12-31T23:59:59Z",
        "99999",
        "+9999-12-31T00:00:00Z",
    ];
    for text in texts {
        assert_eq!(saturated(text), text);
        assert!(!is_saturated(text), "{text}");
        assert!(serde_json::from_value::<Time>(json!(text)).is_err(), "{text}");
    }
    let mut others =
        json!({"time": ["9999-12-31T23:59:59Z", 9999, null, {"time": null}], "startTime": 7, "notAfter": true});
    assert_eq!(saturate_times(&mut others), 0);
}

#[test]
fn objects_decode_afterwards() {
    let mut lease =
        json!({"spec": {"renewTime": "9999-12-31T23:59:59.999999Z", "acquireTime": "9999-12-31T00:00:00Z"}});
    assert!(serde_json::from_value::<Lease>(lease.clone()).is_err());
    assert_eq!(saturate_times(&mut lease), 2);
    let lease: Lease = serde_json::from_value(lease).unwrap();
    assert!(has_saturated_time(&json!(lease)), "MicroTime as the type writes it");
    assert_eq!(lease.spec.unwrap().renew_time, Some(MicroTime(LAST.parse().unwrap())));
    let mut node = json!({"metadata": {"managedFields": [{"time": "9999-12-31T00:00:00Z", "fieldsV1": {"time": "9999-12-31T00:00:00Z"}}]},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": "9999-12-31T00:00:00Z"}]},
        "status": {"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "9999-12-31T00:00:00Z"}]}});
    // An event of a watch, and a list in it.
    let mut event = json!({"type": "ADDED", "object": {"items": [node.clone()]}});
    assert_eq!(saturate_times(&mut event), 3);
    assert_eq!(saturate_times(&mut node), 3);
    assert_eq!(event["object"]["items"][0], node);
    assert!(serde_json::from_value::<Node>(node).is_ok());
}

#[test]
fn depth_does_not_matter() {
    let mut deep = json!({"time": "9999-12-31T23:59:59Z"});
    for _ in 0..200_000 {
        deep = Value::Array(vec![deep]);
    }
    assert!(has_saturated_time(&deep));
    assert_eq!(saturate_times(&mut deep), 1);
    // The drop of a `Value` is recursive.
    while let Value::Array(mut items) = deep {
        deep = items.pop().unwrap();
    }
    assert_eq!(deep, json!({"time": LAST}));
}

/// Generates the times of year 9999 as Go reads them, and jiff: `(without fraction and offset, fraction, offset)`.
fn last_year() -> impl Strategy<Value = (String, String, String)> {
    let date = prop_oneof![3 => (Just(12), 29..=31), 1 => (1..=12, 1..=28)];
    let time = (0..24, 0..60, 0..60);
    let fraction = prop_oneof![Just(String::new()), "[.][0-9]{1,9}"];
    let offset = prop_oneof![
        2 => Just("Z".to_owned()),
        3 => (any::<bool>(), 0..=23, 0..=59).prop_map(|(west, hours, minutes)| {
            format!("{}{hours:02}:{minutes:02}", if west { '-' } else { '+' })
        }),
    ];
    (date, time, fraction, offset).prop_map(|((month, day), (hour, minute, second), fraction, offset)| {
        (format!("-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"), fraction, offset)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    #[test]
    fn every_time_of_the_last_year_decodes((time, fraction, offset) in last_year()) {
        let text = format!("9999{time}{fraction}{offset}");
        // Twenty-eight years earlier the calendar is the same, and within the range.
        let earlier: Timestamp = format!("9971{time}{fraction}{offset}").parse().unwrap();
        let last: Timestamp = format!("9971{}", &Timestamp::MAX.to_string()[4..]).parse().unwrap();
        let read = saturated(&text);
        if earlier <= last {
            prop_assert_eq!(&read, &text);
        } else {
            prop_assert_eq!(&read, if fraction.is_empty() { LAST } else { "9999-12-30T22:00:00.000000Z" });
        }
        prop_assert!(serde_json::from_value::<Time>(json!(read)).is_ok());
        prop_assert!(serde_json::from_value::<MicroTime>(json!(read)).is_ok());
        prop_assert_eq!(&saturated(&read), &read);
    }

    #[test]
    fn texts_stay_if_they_decode_or_are_no_times(text in "[-+0-9TZ:., ]{0,32}|[0-9]{4}-1[0-2]-[0-3][0-9]T[0-2][0-9]:00:00Z") {
        let decodes = serde_json::from_value::<Time>(json!(text)).is_ok();
        let read = saturated(&text);
        if decodes && !text.starts_with('-') && !text.starts_with("0000") {
            prop_assert_eq!(&read, &text);
        }
        prop_assert!(read == text || serde_json::from_value::<Time>(json!(read)).is_ok());
    }
}
