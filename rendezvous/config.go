package rendezvous

import "log/slog"

// A Config describes a rendezvous over etcd.
type Config struct {
	Access
	Rules
	RunID       string
	Prefix      string            // of etcd's keys, with a slash at its end; empty: gorun's own
	TempDir     string            // for data of this process; it is removed when this process ends
	MasterPort  int               // 0: any
	EndAsOthers bool              // a node that is started after the job has ended ends as the job did; otherwise that is an error
	Settings    map[string]string // more of what must be the same on every node
	Reserve     ReserveFunc
	Waiting     func(reason string) // gets what a node waits for
	ExitCode    func(error) int     // of this node, which leaves for that reason
	Logger      *slog.Logger
}

// An Access says where an etcd is, and how to connect to it.
type Access struct {
	Hosted             bool  // by the node that owns an endpoint; otherwise it runs by itself
	Hosts              *bool // whether this node is to host it; nil: if it owns an endpoint
	Endpoints          []Endpoint
	Secret             string // of all who know the etcd that gorun hosts; empty: none
	TLS                bool
	CA, Cert, Key      string // PEM files; empty: none
	User, PasswordFile string // empty: none
}
