//! A node on the command line. In one terminal, and then in others:
//!
//! ```text
//! cargo run -p coord-cluster --example gossip -- 127.0.0.1:7400
//! cargo run -p coord-cluster --example gossip -- 127.0.0.1:7401 127.0.0.1:7400
//! ```
//!
//! The first argument is where to listen, the others are contact points. Ctrl-C leaves gracefully.

use std::time::Duration;

use coord_cluster::{Address, ClusterNode, DowningAfterStable, Event, Settings, Start};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let listen = arguments.next().unwrap_or_else(|| "127.0.0.1:0".into()).parse()?;
    let contacts: Vec<Address> = arguments.map(|contact| contact.parse()).collect::<Result<_, _>>()?;

    let mut settings = Settings::new(listen);
    settings.start = Start::with_contacts(contacts);
    settings.downing = Box::new(DowningAfterStable::new(Duration::from_secs(10)));
    let node = ClusterNode::start(settings).await?;
    println!("{} is listening", node.self_node());

    let mut events = node.events();
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(Event::Member { node, to, .. }) => println!("{node} is {to}"),
                Ok(Event::Leader { leader: Some(leader) }) => println!("{leader} leads"),
                Ok(event) => println!("{event:?}"),
                Err(_) => println!("{:?}", node.view()),
            },
            _ = tokio::signal::ctrl_c() => {
                let graceful = node.leave(Duration::from_secs(10)).await?.graceful;
                println!("left {}", if graceful { "gracefully" } else { "at the deadline" });
                return Ok(());
            }
        }
    }
}
