package embedded

import (
	"context"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"strconv"
	"time"

	"go.etcd.io/etcd/server/v3/embed"

	"github.com/gorun/gorun/env/network"
)

// Members of a cluster are served here and not by etcd, as clients are. It would listen for them before it has looked for
// them itself, so that members that start together wait a second for each other's answer, and keep their connections for
// five seconds after it has been closed.

// snapshotTime is how long a member may take to send what another one has missed.
const snapshotTime = 5 * time.Minute

// peerTLS gives etcd credentials with which it connects to the other members.
func (s *Server) peerTLS(config *embed.Config) error {
	switch {
	case !s.config.several():
		return nil
	case s.config.Files != nil:
		config.PeerTLSInfo = s.config.Files.tls()
		return nil
	case s.own != nil:
		info, err := s.dir.writeTLS(s.own, time.Now())
		config.PeerTLSInfo, config.TlsMinVersion = info, "TLS1.3"
		return err
	}
	return nil
}

// connectPeers gets ready to ask the other servers, before there is a member.
func (s *Server) connectPeers() (err error) {
	if s.clientTLS, err = s.config.clientTLS(s.own); err != nil {
		return err
	}
	s.peerClient = &http.Client{Transport: &http.Transport{
		DialContext: dialPeer, TLSClientConfig: s.clientTLS.Clone(), DisableKeepAlives: true,
	}}
	return nil
}

func dialPeer(ctx context.Context, _, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	return network.DialTCP(ctx, address)
}

// answerPeer lets the member answer, as soon as there is one, and until it stops: where it reads a database that is closed, it panics with
// a lock, for which the next request would wait for ever.
func (s *Server) answerPeer(w http.ResponseWriter, r *http.Request) {
	peer := s.peer.Load()
	if peer != nil {
		select {
		case <-s.member.Server.StoppingNotify():
			peer = nil
		default:
		}
	}
	switch {
	case r.URL.Path == foundingPath:
		s.serveFounding(w, r)
	case peer != nil:
		(*peer).ServeHTTP(w, r)
	default:
		http.NotFound(w, r)
	}
}

// servePeers listens on the port above each listener's.
func (s *Server) servePeers() error {
	credentials, err := s.config.serverTLS(s.own)
	if err != nil {
		return err
	}
	if credentials != nil {
		credentials = credentials.Clone()
		credentials.NextProtos = nil // HTTP/1.1
	}
	s.peers = &http.Server{
		Handler:           http.HandlerFunc(s.answerPeer),
		ConnState:         admitMember,
		ReadHeaderTimeout: handshake,
		ReadTimeout:       snapshotTime,
		ErrorLog:          log.New(io.Discard, "", 0), // what strangers do is no news
	}
	for _, client := range s.config.Listeners {
		a := addrOf(client)
		bound, err := net.Listen("tcp", net.JoinHostPort(a.Addr().String(), strconv.Itoa(int(a.Port())+1)))
		if err != nil {
			return err
		}
		l := memberListener(s.admissions(bound, "members"), credentials)
		s.serving.Go(func() {
			if err := s.peers.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				s.fail(err)
			}
		})
	}
	return nil
}
