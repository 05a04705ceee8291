//! The store against real servers, where `KARMAFORM_TEST_S3_SEAWEEDFS` or `KARMAFORM_TEST_S3_MOTO` names one as `tests/lab/s3.sh up` does,
//! and against one in this process that misbehaves.

mod answers;
mod fake;
mod faults;
mod real;
mod roles;
mod servers;
