//! Hands the questions of a refresh to whom each is for; each of them asks in batches of its own.

use futures::future::join4;
use karmaform_model::{Ask, Diagnostic, Object};

use crate::archive::{self, KubernetesArchive};
use crate::archive_look;
use crate::client::Client;
use crate::{list, look, pod, pod_look};

type Answer = Result<Option<Object>, Diagnostic>;

/// Answers all asks, in their order.
pub(crate) async fn observe(client: &Client, archive: &KubernetesArchive, asks: &[Ask]) -> Vec<Answer> {
    let of = |is: &dyn Fn(&str) -> bool| asks.iter().enumerate().filter(|(_, a)| is(&a.resource_type)).map(|(i, _)| i).collect::<Vec<_>>();
    let pods = of(&|t| t == pod::KIND);
    let archives = of(&|t| t == archive::KIND);
    let lists = of(&|t| t == list::KIND);
    let objects = of(&|t| ![pod::KIND, archive::KIND, list::KIND].contains(&t));
    let chosen = |indices: &[usize]| indices.iter().map(|i| &asks[*i]).collect::<Vec<_>>();
    let (object_asks, pod_asks, archive_asks, list_asks) = (chosen(&objects), chosen(&pods), chosen(&archives), chosen(&lists));
    let (a, b, c, d) = join4(
        look::observe(client, &object_asks),
        pod_look::observe(client, &pod_asks),
        archive_look::observe(client, archive, &archive_asks),
        list::observe(client, &list_asks),
    )
    .await;
    let mut answers: Vec<(usize, Answer)> = objects
        .into_iter()
        .zip(a)
        .chain(pods.into_iter().zip(b))
        .chain(archives.into_iter().zip(c))
        .chain(lists.into_iter().zip(d))
        .collect();
    answers.sort_by_key(|(index, _)| *index);
    answers.into_iter().map(|(_, answer)| answer).collect()
}
