# karmaform. `make` alone prints what there is.
# Everything is built below $(TARGET) and cached below ~/.cache/karmaform (KARMAFORM_CACHE); nothing else on the machine changes.

SHELL := /bin/bash
ARCH := $(shell rustc -vV 2>/dev/null | sed -n 's/^host: \([^-]*\)-.*/\1/p')
TRIPLE := $(ARCH)-unknown-linux-gnu
TARGET := $(or $(CARGO_TARGET_DIR),target)
BINARY := $(TARGET)/$(TRIPLE)/release/karmaform
# Built with the tests; stands in for Karmada's own programs in pods.
export KARMAFORM_STAND_IN ?= $(abspath $(TARGET))/debug/karmada-stand-in
# Test data that is not ours to keep here (HCL's specification suite); tests that read it say so where it is missing.
ifneq ($(wildcard ../shared/data),)
export KARMAFORM_SHARED_DATA ?= $(realpath ../shared/data)
endif

.PHONY: help setup build demo test test-karmada lint fmt fuzz bless bench bench-karmada bench-hosts kill reference clean

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

setup: ## install what building and testing need (Debian packages; a Rust toolchain is assumed)
	@tests/lab/setup.sh

build: setup ## one static binary
	@# Only the last step links statically. With crt-static everywhere, OpenSSL is compiled with -static and then leaves its locks out: it
	@# would crash as soon as two hosts are connected to at once.
	cargo rustc --release --locked --target $(TRIPLE) -p karmaform --bin karmaform -- -C target-feature=+crt-static
	@grep -qs 'define OPENSSL_THREADS' $(TARGET)/$(TRIPLE)/release/build/openssl-sys-*/out/openssl-build/install/include/openssl/*.h || \
		{ echo 'the OpenSSL that was built knows no threads'; exit 1; }
	@ls -l $(BINARY)

demo: build ## three real hosts, an etcd cluster on them from nothing, damage, repair, a rolling change, and away again
	@tests/lab/demo.sh $(BINARY)

test: setup ## every test; real hosts are booted for it where the machine can
	tests/lab/prepare.sh cargo test --workspace --locked --no-run
	tests/lab/with.sh tests/lab/lanes.sh

test-karmada: setup ## the tests of Karmada on Kubernetes and on hosts with real programs: KARMADA_BIN=folder KUBE_BIN=folder [HOST_BIN=folder]
	@# HOST_BIN has the programs of the Kubernetes that the host cluster is made of, kubelet and kube-proxy too; unless given, Debian's 1.20.
	@[ -x "$(KARMADA_BIN)/karmada-scheduler" -a -x "$(KUBE_BIN)/kube-apiserver" ] || \
		{ echo 'KARMADA_BIN and KUBE_BIN must be folders with the programs of Karmada and of a Kubernetes that fits'; exit 2; }
	cargo test --locked -p karmaform-tests --test all --no-run
	KARMAFORM_TEST_KARMADA_BIN="$(abspath $(KARMADA_BIN))" KARMAFORM_TEST_KUBE_BIN="$(abspath $(KUBE_BIN))" \
		KARMAFORM_KUBE_BIN="$(abspath $(HOST_BIN))" \
		tests/lab/with.sh cargo test --locked -p karmaform-tests --test all -- --nocapture karmada:: karmada_on_hosts::

lint: setup ## formatting and clippy, warnings are errors
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format everything
	cargo fmt --all

fuzz: setup ## fuzz the language for FUZZ_SECONDS (600) each target; needs cargo-fuzz
	core/lang/fuzz/run.sh $(or $(FUZZ_SECONDS),600)

bless: setup ## rewrite the expectations of tests/cases, docs/reference and docs/language; read that diff
	BLESS=1 cargo test --locked -p karmaform-tests --test all -- cases reference examples

bench: build ## speed: criterion, whole-process runs with ratios, and real hosts
	@# the same target as `build`, so that its libraries are used again
	cargo bench --locked --target $(TRIPLE) -p karmaform-tests
	tests/lab/with.sh tests/bench/run.sh $(BINARY)

bench-karmada: build ## a control plane beside karmada-operator, members beside karmadactl: KARMADA_BIN=folder KUBE_BIN=folder (kubelet, kube-proxy and all)
	@[ -x "$(KARMADA_BIN)/karmada-operator" -a -x "$(KUBE_BIN)/kubelet" ] || \
		{ echo 'KARMADA_BIN and KUBE_BIN must be folders with the programs of Karmada and of a Kubernetes, karmada-operator and kubelet among them'; exit 2; }
	KARMAFORM_KUBE_BIN="$(abspath $(KUBE_BIN))" tests/lab/with.sh tests/bench/operator.sh $(BINARY) "$(abspath $(KARMADA_BIN))" "$(abspath $(KUBE_BIN))"
	tests/lab/with.sh tests/bench/members.sh $(BINARY) "$(abspath $(KARMADA_BIN))" "$(abspath $(KUBE_BIN))"

bench-hosts: build ## a control plane on three hosts, beside Ansible
	cargo build --locked -p karmaform-stand-in
	KARMAFORM_STAND_IN="$${CARGO_TARGET_DIR:-target}/debug/karmada-stand-in" tests/lab/with.sh tests/bench/ansible.sh $(BINARY)

kill: setup ## SIGKILL, pauses, full disks, and networks that are cut, at 50 random moments of create, change and destroy, on real hosts and on Kubernetes
	cargo build --locked -p karmaform-stand-in
	KARMAFORM_KILLS=50 tests/lab/with.sh cargo test --locked -p karmaform-tests --test all -- --nocapture kill:: faults::

reference: setup ## write docs/reference from the schemas
	BLESS=1 cargo test --locked -p karmaform-tests --test all -- reference

clean: ## remove what was built (the cache stays)
	cargo clean
