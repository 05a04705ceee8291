//! How the API is reached from outside: the blocks `load_balancer`, `service`, `ingress` and `tls_route`.

use karmaform_model::{Attribute, Block, Nesting, Schema, Type};

pub(super) fn balancer() -> Vec<Attribute> {
    vec![
        Attribute::optional(
            "vip",
            Type::String,
            "A free IP address of the hosts' network, for a load balancer that karmaform makes: haproxy on each host with an API server, and \
             keepalived, which holds the address on one of them. It is put into the certificate, into kubeconfigs, and into what members \
             register with.",
        ),
        Attribute::optional(
            "address",
            Type::String,
            "Or the DNS name or IP address of a load balancer of yours. It is put into the same places.",
        ),
        Attribute::optional(
            "port",
            Type::Number,
            "The port that it listens on. Unless written: 6443 with `vip`, that of the API servers with `address`.",
        ),
        Attribute::optional(
            "interface",
            Type::String,
            "With `vip`: the network interface that it is put on, on each host; the one with the host's address unless written.",
        ),
        Attribute::optional(
            "router_id",
            Type::Number,
            "With `vip`: the VRRP router's number, 1 to 255; made of the address unless written. Others on that network must have other ones.",
        ),
        Attribute::optional(
            "haproxy_source",
            Type::String,
            "With `vip`: where haproxy comes from: a path or URL with `{program}` and `{arch}`, an archive or an image; from the host's own packages unless written.",
        ),
        Attribute::optional("haproxy_source_sha256", Type::String, "Its SHA-256 sum, or where it is written."),
        Attribute::optional("keepalived_source", Type::String, "The same for keepalived."),
        Attribute::optional("keepalived_source_sha256", Type::String, "Its SHA-256 sum, or where it is written."),
    ]
}

pub(super) fn service() -> Vec<Attribute> {
    vec![
        Attribute::optional("type", Type::String, "\"ClusterIP\", \"NodePort\" or \"LoadBalancer\".").or("ClusterIP"),
        Attribute::optional("node_port", Type::Number, "The port on every node, 30000 to 32767."),
        Attribute::optional("annotations", Type::map(Type::String), "Annotations of the Service, for load balancers."),
        Attribute::optional("load_balancer_class", Type::String, "The class of the load balancer."),
        Attribute::optional(
            "external_port",
            Type::Number,
            "The port that people reach it by, where that is another than the Service's: the one of a load balancer outside of the cluster. \
             It goes into kubeconfigs with the first of `names`, or with the Service's own address.",
        ),
        Attribute::optional(
            "names",
            Type::list(Type::String),
            "DNS names and IP addresses that people reach it by: of a load balancer outside of the cluster, of nodes. They are put into its \
             certificate, and the first into kubeconfigs. Unless written, kubeconfigs have the host of `ingress` or `tls_route`, else the \
             address that a Service of the type LoadBalancer was given, which is put into the certificate in any case.",
        ),
    ]
}

pub(super) fn ingress() -> Vec<Attribute> {
    vec![
        Attribute::required("host", Type::String, "The DNS name; it is put into the certificate, and into kubeconfigs."),
        Attribute::optional("port", Type::Number, "The port that the controller listens on for TLS.").or(443i64),
        Attribute::optional("class_name", Type::String, "The IngressClass. The cluster's default one unless written."),
        Attribute::optional(
            "annotations",
            Type::map(Type::String),
            "Annotations that make the controller hand TLS on. Unless written, ingress-nginx's \
             `nginx.ingress.kubernetes.io/ssl-passthrough = \"true\"`, which works only if that controller was started with \
             `--enable-ssl-passthrough`. HAProxy's controller takes `haproxy.org/ssl-passthrough`, HAProxy Ingress \
             `haproxy-ingress.github.io/ssl-passthrough`.",
        ),
    ]
}

pub(super) fn tls_route() -> Block {
    let gateway = vec![
        Attribute::required("name", Type::String, "Its name."),
        Attribute::optional("namespace", Type::String, "Its namespace. The control plane's unless written."),
        Attribute::optional(
            "section_name",
            Type::String,
            "The listener, of the protocol TLS and in the mode Passthrough. Any that fits unless written.",
        ),
    ];
    let attributes = vec![
        Attribute::required(
            "hosts",
            Type::list(Type::String),
            "The DNS names. They are put into the certificate, and the first into kubeconfigs.",
        ),
        Attribute::optional("port", Type::Number, "The port that the gateway listens on.").or(443i64),
        Attribute::optional(
            "api_version",
            Type::String,
            "The version of the Gateway API: \"v1\" from its release 1.5 on; \"v1alpha3\" or \"v1alpha2\" of the experimental channel \
             before.",
        )
        .or("v1"),
    ];
    let gateway = Block { name: "gateway", nesting: Nesting::Single, schema: Schema::new("The Gateway.", gateway) };
    let doc = "A TLSRoute of the Gateway API, which hands TLS on to the API server by the name that clients ask for. The CRDs of the Gateway \
               API must be there when the plan is made.";
    Block { name: "tls_route", nesting: Nesting::Single, schema: Schema::new(doc, attributes).with_blocks(vec![gateway]) }
}
