//! What the block `kubernetes` of an `etcd_cluster` may hold.

use karmaform_model::{Attribute, Block, Nesting, Schema, Type};

/// The block.
pub(crate) fn block() -> Block {
    let attributes = vec![
        Attribute::required(
            "cluster",
            Type::Any,
            "The Kubernetes cluster: a `data \"kubernetes_cluster\"`, or its `connection` (then its nodes and storage classes are not checked).",
        ),
        Attribute::required("namespace", Type::String, "The namespace; it must exist by then."),
        Attribute::required("members", Type::Number, "How many members, one to seven; three or five are best. Another number: who is new joins, or who has the highest numbers leaves, one at a time."),
        Attribute::required(
            "storage",
            Type::String,
            "Where the data is: a storage class, \"hostPath\" for the nodes' own disks (each member stays on its node), or \"emptyDir\" for data \
             that is lost with a pod. Another class gives members empty volumes, one at a time.",
        ),
        Attribute::optional("storage_size", Type::String, "How large each member's volume is: \"10Gi\"; with a class and with \"hostPath\"."),
        Attribute::optional(
            "nodes",
            Type::list(Type::String),
            "With \"hostPath\": the names of the nodes that members are put on, one after the other. They stay there.",
        ),
        Attribute::optional("host_path", Type::String, "With \"hostPath\": the folder on each node; `/var/lib/karmaform/etcd` unless written."),
        Attribute::optional("name", Type::String, "What its objects are called; `etcd-` and the resource's name unless written."),
        Attribute::optional("image", Type::String, "The whole image; `REGISTRY/etcd:VERSION-0` unless written."),
        Attribute::optional("registry", Type::String, "Where the image is; `registry.k8s.io` unless written."),
        Attribute::optional("image_pull_policy", Type::String, "`IfNotPresent`, `Always` or `Never`.").or("IfNotPresent"),
        Attribute::optional("image_pull_secrets", Type::list(Type::String), "Names of Secrets for the registry, in the namespace."),
        Attribute::optional(
            "spread",
            Type::String,
            "Whether members are never on one node (`required`; too few nodes are an error) or only if it can't be otherwise (`preferred`).",
        )
        .or("preferred"),
        Attribute::optional("resources", Type::Any, "Requests and limits of each member; 500m CPU and 512Mi of memory are requested unless written."),
        Attribute::optional("labels", Type::map(Type::String), "More labels on the StatefulSet and its pods."),
        Attribute::optional("annotations", Type::map(Type::String), "More annotations on the StatefulSet and its pods."),
        Attribute::optional("node_selector", Type::map(Type::String), "Labels that a member's node must have."),
        Attribute::optional("tolerations", Type::Any, "Tolerations of the members."),
        Attribute::optional(
            "selinux_level",
            Type::String,
            "The level of the members' SELinux label, as \"s0:c123,c456\". Where nodes enforce SELinux and give each pod a level of its own, a restoration needs one: its helpers \
             have it, too, or they take the volumes away from members that still serve.",
        ),
        Attribute::optional("priority_class", Type::String, "The members' priority class."),
    ];
    let schema = Schema::new("Runs the members as pods of a StatefulSet.", attributes);
    Block { name: "kubernetes", nesting: Nesting::Single, schema }
}
