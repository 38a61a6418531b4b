//! Values under `distinctAttribute` as the allocator remembered them before Kubernetes 1.37: those of the last device of
//! each request. Taking back a device forgets its request, not only the device.

use dra_attrs::{DistinctState, MatchError, ValueSet};

/// Values of the last device of each request, in the order in which the requests came.
#[derive(Clone, Debug, Default)]
pub(super) struct LastOfRequests<'s> {
    values: Vec<(&'s str, ValueSet<'s>)>,
}

impl<'s> LastOfRequests<'s> {
    pub(super) const fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds the values of a request's next device, unless another request or the device before it has one of them.
    pub(super) fn push(&mut self, request: &'s str, device: &ValueSet<'s>) -> Result<(), MatchError> {
        let mut all = DistinctState::new();
        for (_, values) in &self.values {
            all.push(values)?;
        }
        all.push(device)?;
        self.pop(request);
        self.values.push((request, device.clone()));
        Ok(())
    }

    /// Forgets the values of a request.
    pub(super) fn pop(&mut self, request: &str) {
        self.values.retain(|(known, _)| *known != request);
    }
}

#[cfg(test)]
mod tests {
    use dra_attrs::{ListTypes, MatchError, ValueSet};
    use k8s_openapi::api::resource::v1::DeviceAttribute;

    use super::LastOfRequests;

    #[test]
    fn the_last_device_of_a_request_hides_those_before() {
        let attribute = |value| DeviceAttribute { int: Some(value), ..DeviceAttribute::default() };
        let attributes = [1, 2].map(attribute);
        let [one, two] = [0, 1].map(|at| ValueSet::from_attribute(Some(&attributes[at]), ListTypes::Disabled));
        let mut memory = LastOfRequests::default();
        assert_eq!(memory.push("r", &one), Ok(()));
        assert!(matches!(memory.push("r", &one), Err(MatchError::Repeated { .. })));
        assert_eq!(memory.push("r", &two), Ok(()));
        assert_eq!(memory.push("r", &one), Ok(()));
        assert!(matches!(memory.push("q", &one), Err(MatchError::Repeated { .. })));
        memory.pop("r");
        assert!(memory.is_empty());
    }
}
