//! A change of the list of members, which etcd judges by the connections of whoever is asked.
//!
//! One that was cut off from another may go on to take it for away when both talk again, and then it refuses for as long as it runs what the others take
//! (seen on 3.5.16 with two members that answered everything else). So where one refuses because of that, the next
//! one is asked.

use etcd_client::{Error, MemberAddOptions};

use super::{Voters, passing};
use crate::client::{Client, within};

/// What etcd says where it finds that too few are connected.
const UNHEALTHY: &str = "unhealthy cluster";

/// What is to become of the list.
pub(super) enum Change<'a> {
    /// A learner comes, which the others will reach at this URL.
    Join(&'a str),
    /// The member with this id goes.
    Leave(u64),
}

/// Why it was not done.
pub(super) enum Refusal {
    /// It may be done later.
    Waiting(String),
    /// It is wrong.
    Refused(Error),
}

impl Change<'_> {
    /// Asks those that work, the one that leads first. The id of who has come or gone.
    pub(super) async fn ask(&self, client: &Client, voters: &Voters) -> Result<u64, Refusal> {
        let mut said: Vec<String> = Vec::new();
        for (name, _) in voters.speakers() {
            let mut connection = client.open(name).await.map_err(Refusal::Waiting)?;
            match self.ask_one(&mut connection).await {
                Ok(id) => return Ok(id),
                Err(error) => match passing(&error) {
                    // No answer says nothing of whether it was done, which is for the next look.
                    Some(why) if why != UNHEALTHY => return Err(Refusal::Waiting(why)),
                    Some(_) => said.push(name.clone()),
                    None => return Err(Refusal::Refused(error)),
                },
            }
        }
        Err(Refusal::Waiting(format!("{UNHEALTHY}, as {} saw it a moment ago", said.join(", "))))
    }

    async fn ask_one(&self, connection: &mut etcd_client::Client) -> Result<u64, Error> {
        match self {
            Self::Join(url) => {
                let options = MemberAddOptions::new().with_is_learner();
                let answer = within(connection.member_add([*url], Some(options))).await?;
                Ok(answer.member().map_or(0, |member| member.id()))
            }
            Self::Leave(id) => within(connection.member_remove(*id)).await.map(|_| *id),
        }
    }
}
