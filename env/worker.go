package env

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
)

// A Worker is what a worker process is told about itself and its round. The zero value of an optional field
// means that it is unknown.
type Worker struct {
	Rank      int // 0 to WorldSize-1
	WorldSize int // at least 1

	LocalRank      int // 0 to LocalWorldSize-1
	LocalWorldSize int

	GroupRank      int // the agent's number in the round, 0 to GroupWorldSize-1
	GroupWorldSize int // agents in the round

	RoleName      string
	RoleRank      int // 0 to RoleWorldSize-1
	RoleWorldSize int

	MasterAddr string // a host name or an IP address, without brackets
	MasterPort int    // 1 to 65535

	RestartCount int // restarts used so far
	MaxRestarts  int // restarts allowed
	RunID        string

	UseAgentStore bool   // a torch TCPStore is served by the agent; gorun: always false
	ErrorFile     string // where the worker may say why it failed; empty: nowhere

	Round     int    // from 1 upward; 0: not started by gorun
	Token     string `json:"-"` // secret of the round; empty: none. Printable ASCII, at most 1024 bytes
	TLS       bool   // workers encrypt what they send from machine to machine
	StoreAddr string // host:port of a store served by the agent; empty: rank 0 serves it at the master address

	RoundSocket string // by which the worker can hear of the next rounds (see Round); empty: it ends with its round

	ProgressFile string // that the worker may touch to say that it makes progress, and beside which it answers questions (see package progress); empty: none
}

// String describes the worker for people. Like every other way to print a Worker, it leaves out the token.
func (w Worker) String() string {
	return fmt.Sprintf("rank %d of %d (local rank %d, node %d), round %d, master %s",
		w.Rank, w.WorldSize, w.LocalRank, w.GroupRank, w.Round,
		net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort)))
}

// Format prints String for every verb, so that %+v and %#v do not show the token either.
func (w Worker) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, w.String()) }

// LogValue keeps the token out of structured logs.
func (w Worker) LogValue() slog.Value { return slog.StringValue(w.String()) }
