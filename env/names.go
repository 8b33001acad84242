package env

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
)

const (
	maxInt   = math.MaxInt32 // no count or number is larger, so that arithmetic on them cannot overflow
	maxToken = 1024          // bytes
)

// A field ties one variable to one field of Worker.
type field struct {
	name     string
	required bool
	secret   bool   // its value is never printed
	below    string // the variable of the size that this number stays below
	want     string // what a good value is, for errors
	get      func(*Worker) string
	set      func(*Worker, string) bool // false: not a good value
}

// fields is the contract, in the order of the table in the package comment.
var fields = []field{
	number("RANK", "WORLD_SIZE", func(w *Worker) *int { return &w.Rank }).must(),
	count("WORLD_SIZE", 1, func(w *Worker) *int { return &w.WorldSize }).must(),
	number("LOCAL_RANK", "LOCAL_WORLD_SIZE", func(w *Worker) *int { return &w.LocalRank }),
	count("LOCAL_WORLD_SIZE", 0, func(w *Worker) *int { return &w.LocalWorldSize }),
	number("GROUP_RANK", "GROUP_WORLD_SIZE", func(w *Worker) *int { return &w.GroupRank }),
	count("GROUP_WORLD_SIZE", 0, func(w *Worker) *int { return &w.GroupWorldSize }),
	text("ROLE_NAME", "", nil, func(w *Worker) *string { return &w.RoleName }),
	number("ROLE_RANK", "ROLE_WORLD_SIZE", func(w *Worker) *int { return &w.RoleRank }),
	count("ROLE_WORLD_SIZE", 0, func(w *Worker) *int { return &w.RoleWorldSize }),
	text("MASTER_ADDR", "a host name or an IP address", isHost, func(w *Worker) *string { return &w.MasterAddr }).must(),
	integer("MASTER_PORT", 1, 65535, func(w *Worker) *int { return &w.MasterPort }).must(),
	count("TORCHELASTIC_RESTART_COUNT", 0, func(w *Worker) *int { return &w.RestartCount }),
	count("TORCHELASTIC_MAX_RESTARTS", 0, func(w *Worker) *int { return &w.MaxRestarts }),
	text("TORCHELASTIC_RUN_ID", "", nil, func(w *Worker) *string { return &w.RunID }),
	boolean("TORCHELASTIC_USE_AGENT_STORE", func(w *Worker) *bool { return &w.UseAgentStore }),
	text("TORCHELASTIC_ERROR_FILE", "", nil, func(w *Worker) *string { return &w.ErrorFile }),
	count("GORUN_ROUND", 0, func(w *Worker) *int { return &w.Round }),
	text("GORUN_TOKEN", fmt.Sprintf("at most %d printable ASCII characters without spaces", maxToken),
		isToken, func(w *Worker) *string { return &w.Token }).hidden(),
	boolean("GORUN_TLS", func(w *Worker) *bool { return &w.TLS }),
	text("GORUN_STORE_ADDR", "host:port", isHostPort, func(w *Worker) *string { return &w.StoreAddr }),
	text("GORUN_ROUND_SOCKET", "", nil, func(w *Worker) *string { return &w.RoundSocket }),
	text("GORUN_PROGRESS_FILE", "", nil, func(w *Worker) *string { return &w.ProgressFile }),
}

func (f field) must() field   { f.required = true; return f }
func (f field) hidden() field { f.secret = true; return f }

func integer(name string, low, high int, at func(*Worker) *int) field {
	return field{
		name: name,
		want: fmt.Sprintf("an integer from %d to %d", low, high),
		get:  func(w *Worker) string { return strconv.Itoa(*at(w)) },
		set: func(w *Worker, s string) bool {
			n, err := strconv.Atoi(s)
			*at(w) = n
			return err == nil && low <= n && n <= high
		},
	}
}

func count(name string, low int, at func(*Worker) *int) field {
	f := integer(name, low, maxInt, at)
	f.want = fmt.Sprintf("an integer of at least %d", low)
	return f
}

// number is a number that must be below a size. This is checked when both have been read.
func number(name, size string, at func(*Worker) *int) field {
	f := integer(name, 0, maxInt, at)
	f.below = size
	f.want = "an integer from 0 to " + size + "-1"
	return f
}

func text(name, want string, good func(string) bool, at func(*Worker) *string) field {
	return field{
		name: name,
		want: want,
		get:  func(w *Worker) string { return *at(w) },
		set: func(w *Worker, s string) bool {
			*at(w) = s
			return good == nil || good(s)
		},
	}
}

// boolean uses Python's words, because torch compares the value with str(True).
func boolean(name string, at func(*Worker) *bool) field {
	return field{
		name: name,
		want: "True or False",
		get: func(w *Worker) string {
			if *at(w) {
				return "True"
			}
			return "False"
		},
		set: func(w *Worker, s string) bool {
			*at(w) = s == "True"
			return s == "True" || s == "False"
		},
	}
}

func isHost(s string) bool { return s != "" && isGraphic(s) && !strings.ContainsAny(s, "[]/") }

func isHostPort(s string) bool {
	if s == "" {
		return true
	}
	host, port, err := net.SplitHostPort(s)
	n, perr := strconv.Atoi(port)
	return err == nil && perr == nil && isHost(host) && 0 < n && n <= 65535
}

func isToken(s string) bool { return len(s) <= maxToken && isGraphic(s) }

// isGraphic reports whether s consists of visible ASCII characters.
func isGraphic(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
}
