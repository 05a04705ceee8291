//! The store, and files as objects, against real servers, where `KARMAFORM_TEST_S3_SEAWEEDFS` or `KARMAFORM_TEST_S3_MOTO` names one as
//! `tests/lab/s3.sh up` does, and against one in this process that misbehaves.

mod answers;
mod depot;
mod fake;
mod faults;
mod objects;
mod real;
mod refused;
mod roles;
mod servers;
