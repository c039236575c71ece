"""A double of metal3's baremetal-operator, drawn from its source of August 2026.

It works on hosts of an API server over HTTP, with the concurrency, the stale reads, the back-off
and the throttling of the original, in scaled time. `operator.py` runs workers, `queue.py` is their
work queue, `informer.py` the cache that they read, `throttle.py` the limit of their requests.
`state_machine.py` decides what is next for a host, `actions.py` does it with `provisioner.py`, and
`results.py` says when the host is looked at again; `hosts.py` reads hosts, `conditions.py` has
their conditions. `nodes.py` is what the
provisioner needs: `memory_nodes.py` has nodes in memory, `ironic_nodes.py` those of an Ironic;
`book.py` notes which of them were busy at once. `story.py` has what the original has shown.

Where each transition is from (`host_state_machine.go`, else as named):

| from | to | when | function |
|---|---|---|---|
| none | registering, unmanaged | with BMC details, or without | `handleNone` |
| unmanaged | registering | BMC details are there | `handleUnmanaged` |
| registering | inspecting, preparing | inspection enabled or not | `handleRegistering` |
| inspecting | preparing | inspection is complete | `handleInspecting`, `actionInspecting` |
| preparing | available | nothing is left to prepare | `handlePreparing`, `actionPreparing` |
| available | inspecting | the inspect annotation is there | `handleAvailable` |
| available | preparing | the RAID is new | `handleAvailable` |
| available | provisioning | online, and there is something new | `actionManageAvailable` |
| available | (error) | five deployments of this image failed | `actionManageAvailable` |
| provisioning | provisioned | the node is active | `handleProvisioning`, `actionProvisioning` |
| provisioning | deprovisioning | an error, or the image was removed | `handleProvisioning` |
| provisioned | deprovisioning | the image was removed or changed | `provisioningCancelled` |
| deprovisioning | available | the node is available | `handleDeprovisioning` |
| deprovisioning | powering off | as above, while being deleted | `handleDeprovisioning` |
| any | deprovisioning, powering off, deleting | deletion was requested | `checkInitiateDelete` |
| powering off | deleting | the node is off | `handlePoweringOffBeforeDelete` |
| deleting | gone | the node is gone; the finalizer goes | `actionDeleting` |
| any | (delayed) | no capacity for the next state | `updateHostStateFrom`, `checkDelayedHost` |

A paused host is not looked at: first check of `Reconcile` (`baremetalhost_controller.go`), from the
cache. Retries are in `action_result.go`, `provisioner.py` follows `pkg/provisioner/ironic/`.

A host with the annotation `detached` is removed from Ironic once it is available or provisioned;
its state stays (`checkDetachedHost`).

With new RAID volumes an available host goes to `preparing`, and is cleaned by hand
(`handleAvailable`, `Prepare`). Root device hints are taken over by the next look, and nothing is
prepared for them alone (`matchProfile`). After an inspection the operator notes the architecture in
the specification. A failed action is tried again after a back-off that
doubles up to hours, for ever, in the state in which it failed (`actionFailed`). A host in use is
adopted if its node was registered again, and serviced (`actionManageSteadyState`).

As measured with the original, a host whose secret is missing gets another registration error every
10 seconds, without a back-off; its count has no bound.

Left out: what is in secrets, forced detaching, externally provisioned hosts, reboots,
preprovisioning images, resources of firmware, other resources, the health of hosts, the times of
their operations. An error of detaching is one that the schema of hosts does not know: the original
cannot store it.
"""
