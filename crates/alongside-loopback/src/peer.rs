//! Which user a connection comes from.
//!
//! The kernel knows the owner of every socket on this machine. A client that belongs to another user is refused before it
//! sends a byte, so it can neither try tokens nor hold connections.

use tokio::net::TcpStream;

/// Whether a client certainly belongs to another user. Root is trusted: it can read the token anyway, and it forwards
/// connections for others (containers, virtual machines).
///
/// `false` if the system does not say: on other systems, and behind some network emulation.
pub(crate) fn is_of_another_user(stream: &TcpStream) -> bool {
    #[cfg(target_os = "linux")]
    return linux::owner(stream).is_some_and(|owner| owner != 0 && owner != rustix::process::geteuid().as_raw());
    #[cfg(not(target_os = "linux"))]
    return {
        let _ = stream;
        false
    };
}

#[cfg(target_os = "linux")]
mod linux {
    use std::net::{SocketAddr, SocketAddrV4};

    use rustix::net::netlink::{SOCK_DIAG, SocketAddrNetlink};
    use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};
    use tokio::net::TcpStream;

    /// Length of `nlmsghdr`, which precedes every message.
    const HEADER_BYTES: usize = 16;
    const REQUEST_BYTES: usize = HEADER_BYTES + 56;
    const SOCK_DIAG_BY_FAMILY: u16 = 20;
    const NLM_F_REQUEST: u16 = 1;
    const IPV4: u8 = 2;
    const TCP: u8 = 6;
    /// Where the ports of the socket are in a response; those of its peer follow.
    const PORTS_AT: usize = HEADER_BYTES + 4;
    const USER_AT: usize = HEADER_BYTES + 64;

    /// The user who owns the other end of a connection on this machine.
    pub(super) fn owner(stream: &TcpStream) -> Option<u32> {
        let (Ok(SocketAddr::V4(client)), Ok(SocketAddr::V4(server))) = (stream.peer_addr(), stream.local_addr()) else {
            return None;
        };
        match look_up(client, server) {
            Ok(owner) => owner,
            Err(error) => {
                tracing::debug!(%error, "cannot find out which user a client belongs to");
                None
            }
        }
    }

    /// Asks for the one socket with these addresses, which costs the same however many sockets there are: `/proc/net/tcp` would
    /// list them all.
    fn look_up(client: SocketAddrV4, server: SocketAddrV4) -> rustix::io::Result<Option<u32>> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            Some(SOCK_DIAG),
        )?;
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&socket, &request(client, server), SendFlags::empty(), &kernel)?;
        let mut response = [0; 512];
        // The kernel has responded before `sendto` returns.
        let (_, length) = recv(&socket, &mut response[..], RecvFlags::empty())?;
        Ok(parse(&response[..length.min(512)], client, server))
    }

    /// `struct inet_diag_req_v2` of `linux/inet_diag.h`, after its header.
    fn request(client: SocketAddrV4, server: SocketAddrV4) -> [u8; REQUEST_BYTES] {
        let mut bytes = Vec::with_capacity(REQUEST_BYTES);
        bytes.extend(u32::try_from(REQUEST_BYTES).unwrap_or_default().to_ne_bytes());
        bytes.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        bytes.extend(NLM_F_REQUEST.to_ne_bytes());
        // A sequence number and a port, neither needed for one request.
        bytes.extend([0; 8]);
        bytes.extend([IPV4, TCP, 0, 0]);
        // Sockets in any state.
        bytes.extend([0xff; 4]);
        bytes.extend(client.port().to_be_bytes());
        bytes.extend(server.port().to_be_bytes());
        for address in [client.ip(), server.ip()] {
            bytes.extend(address.octets());
            bytes.extend([0; 12]);
        }
        // Any interface.
        bytes.extend([0; 4]);
        // Any cookie.
        bytes.extend([0xff; 8]);
        let mut request = [0; REQUEST_BYTES];
        request.copy_from_slice(&bytes);
        request
    }

    /// `struct inet_diag_msg`; an error says that the client has already closed its socket.
    fn parse(response: &[u8], client: SocketAddrV4, server: SocketAddrV4) -> Option<u32> {
        let two = |at: usize| response.get(at..at + 2)?.try_into().ok();
        let is_found = u16::from_ne_bytes(two(4)?) == SOCK_DIAG_BY_FAMILY;
        let ports = (
            u16::from_be_bytes(two(PORTS_AT)?),
            u16::from_be_bytes(two(PORTS_AT + 2)?),
        );
        // A listener would have no peer.
        if !is_found || ports != (client.port(), server.port()) {
            return None;
        }
        let user = response.get(USER_AT..USER_AT + 4)?.try_into().ok()?;
        Some(u32::from_ne_bytes(user))
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[tokio::test]
        async fn owner_of_a_client_is_this_user() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let _client = TcpStream::connect(address).await.unwrap();
            let (accepted, _) = listener.accept().await.unwrap();
            assert_eq!(owner(&accepted), Some(rustix::process::geteuid().as_raw()));
        }

        #[tokio::test]
        async fn socket_that_does_not_exist_has_no_owner() {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let SocketAddr::V4(address) = listener.local_addr().unwrap() else {
                unreachable!("bound to IPv4");
            };
            // Neither a socket in no state, nor the listener itself.
            let nobody = SocketAddrV4::new(*address.ip(), 1);
            assert_eq!(look_up(nobody, address).ok().flatten(), None);
            assert_eq!(look_up(address, nobody).ok().flatten(), None);
        }
    }
}
