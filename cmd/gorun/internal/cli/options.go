package cli

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/gorun/gorun/launcher"
	"github.com/gorun/gorun/rendezvous"
)

// options is what flags and environment ask for.
type options struct {
	given map[string]string // how each flag was given, "--name=value" or "PET_NAME=value"

	nnodes, nproc, nodeRank, maxRestarts int
	role, localAddr, runID               string

	standalone       bool
	backend          string
	masterAddr       string
	masterPort       int
	endpoint         rendezvous.Master // wins over the two before
	confRank         *int              // of --rdzv-conf
	tokenFile, token string            // the file wins
	master           rendezvous.Master // what follows from the above; empty: up to the rendezvous
	overridden       []string          // flags that --standalone makes meaningless
	grace            time.Duration
	logDir           string
	redirects, tee   launcher.StdMap
}

func defaults() *options {
	return &options{given: make(map[string]string), nnodes: 1, nproc: 1, role: "default", backend: "static", grace: 30 * time.Second}
}

// defaultPort is torchrun's, for several nodes that cannot agree on one otherwise.
const defaultPort = 29500

// check holds the flags against each other, and settles what follows from them.
func (o *options) check() error {
	if o.standalone {
		if o.nnodes > 1 {
			return usagef("%s: --standalone is for one node", o.given["nnodes"])
		}
		o.standAlone()
	}
	if o.backend != "static" {
		return usagef("%s: this version has no elastic rendezvous backend: want static", o.given["rdzv-backend"])
	}
	if err := o.checkNodeRank(); err != nil {
		return err
	}
	o.master = rendezvous.Master{Addr: o.masterAddr, Port: o.masterPort}
	if o.endpoint.Addr != "" {
		o.master = o.endpoint
	}
	if o.nnodes == 1 {
		if o.runID == "" {
			o.runID = randomID()
		}
		return o.loadToken()
	}
	if o.master.Addr == "" {
		return usagef("%s: where is node 0? Say it on every node, as in --master-addr=node0 --master-port=%d", o.given["nnodes"], defaultPort)
	}
	if o.master.Port == 0 {
		o.master.Port = defaultPort
	}
	if o.runID == "" {
		o.runID = "none"
	}
	return o.loadToken()
}

func (o *options) checkNodeRank() error {
	from := "node-rank"
	if _, given := o.given[from]; !given && o.confRank != nil {
		o.nodeRank, from = *o.confRank, "rdzv-conf"
	}
	if o.nodeRank >= o.nnodes {
		return usagef("%s: node ranks are 0 to %d, since --nnodes is %d", o.given[from], o.nnodes-1, o.nnodes)
	}
	return nil
}

// standAlone drops what standalone overrides, as torchrun does.
func (o *options) standAlone() {
	for _, name := range []string{"rdzv-backend", "rdzv-endpoint", "rdzv-id", "rdzv-conf"} {
		if _, given := o.given[name]; given {
			o.overridden = append(o.overridden, "--"+name)
		}
	}
	o.backend, o.endpoint, o.runID, o.confRank = "static", rendezvous.Master{}, "", nil
}

func randomID() string {
	id := make([]byte, 8)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// A token is long enough not to be guessed, and short enough for the environment.
const minToken, maxToken = 16, 1024

// loadToken reads the token file, if there is one, and checks the token; it is never shown.
func (o *options) loadToken() error {
	from := "GORUN_TOKEN"
	if o.tokenFile != "" {
		from = o.given["rdzv-token-file"]
		text, err := readToken(o.tokenFile)
		if err != nil {
			return usagef("%s: %w", from, err)
		}
		o.token = text
	} else if o.token == "" {
		return nil
	}
	isVisible := func(r rune) bool { return r > ' ' && r < 0x7f }
	if len(o.token) < minToken || len(o.token) > maxToken || strings.ContainsFunc(o.token, func(r rune) bool { return !isVisible(r) }) {
		return usagef("%s: want a token of %d to %d visible ASCII characters, as of openssl rand -hex 32", from, minToken, maxToken)
	}
	return nil
}

func readToken(name string) (string, error) {
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(file, maxToken+64))
	if err != nil {
		return "", fmt.Errorf("cannot read the token: %w", err)
	}
	return string(bytes.TrimSpace(text)), nil
}
