package bootstrap

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/gorun/gorun/comm/internal/core"
	"github.com/gorun/gorun/comm/internal/machine"
	"github.com/gorun/gorun/comm/internal/protocol"
	"github.com/gorun/gorun/comm/internal/wait"
	"github.com/gorun/gorun/env/auth"
)

// Info is what ranks exchange when they join. As ranks of other versions read it, never change the JSON name or the
// type of a field.
type Info struct {
	core.Peer
	Protocol int    `json:"protocol,omitempty"`  // see protocol.Version; 0: that of a build before it had a number
	TLS      bool   `json:"tls,omitempty"`       // it encrypts what leaves the machine
	OwnToken string `json:"own_token,omitempty"` // the fingerprint of its loopback token, if the user has set no token
	Tuning   string `json:"tuning,omitempty"`    // rank 0's is used

	RoundTrip time.Duration `json:"round_trip,omitempty"` // to the store, in nanoseconds; 0: unknown
}

// longestInfo is the most bytes of an Info.
const longestInfo = 16 << 10

func parseInfo(b []byte) (r Info, err error) {
	if len(b) > longestInfo {
		return r, fmt.Errorf("%d bytes, limit %d", len(b), longestInfo)
	}
	if err = json.Unmarshal(b, &r); err == nil {
		err = r.cleanHost()
	}
	return r, err
}

// longestHost is the most bytes of a host's name. Errors show it, so it is short.
const longestHost = 255

// cleanHost makes the host's name printable, and refuses one that is too long then.
func (r *Info) cleanHost() error {
	if r.Host = auth.Printable(r.Host); len(r.Host) > longestHost {
		return fmt.Errorf("a host name of %d bytes, limit %d", len(r.Host), longestHost)
	}
	return nil
}

// fits refuses an Info that is too long for the others as rank 0 encodes it: the rank itself may have encoded it in
// fewer bytes.
func (r *Info) fits() error {
	b, err := json.Marshal(r)
	if err == nil && len(b) > longestInfo {
		err = fmt.Errorf("%d bytes as rank 0 encodes it, limit %d", len(b), longestInfo)
	}
	return err
}

// self returns the Info of this rank, which listens at addr.
func self(addr string) Info {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	place, _ := machine.Here() // openAcceptor reports the error
	return Info{Peer: core.Peer{Addr: addr, Host: host, PID: os.Getpid(), CPUs: wait.CPUs(), Place: place}, Protocol: protocol.Version}
}
