package bootstrap

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gorun/gorun/comm/internal/reduce"
	"github.com/gorun/gorun/env"
)

// A place says which rank this is and where it meets the others.
type place struct {
	rank, size int
	here       int    // ranks of this node; 0: not known
	local      int    // this rank's local rank
	round      int    // gorun's round; 0 outside gorun
	meet       string // the meeting place, for errors
	master     string // host:port of the store, unless there is a path or a Store
	hosted     bool   // the agent serves the store at master, not rank 0
	path       string // file of the store
}

// place returns the place according to options and environment.
func (c *Config) place() (place, error) {
	if _, err := reduce.Level(); err != nil {
		return place{}, err
	}
	switch c.Transport {
	case Auto, "shm", "tcp":
	default:
		return place{}, fmt.Errorf("transport %q: want auto, shm or tcp", c.Transport)
	}
	u, err := url.Parse(c.Method)
	if err != nil {
		return place{}, fmt.Errorf("init method %q: %w", c.Method, err)
	}
	set := map[string]string{} // options, as variables of the environment
	if q := u.Query(); q.Has("rank") {
		set["RANK"], set["WORLD_SIZE"] = q.Get("rank"), q.Get("world_size")
	}
	if c.Ranked {
		set["RANK"], set["WORLD_SIZE"] = strconv.Itoa(c.Rank), strconv.Itoa(c.Size)
	}
	var p place
	switch {
	case c.Store != nil:
		p.meet = "the store given"
	case u.Scheme == "tcp" && u.Hostname() != "" && u.Port() != "":
		p.meet = "tcp://" + u.Host
		p.master = net.JoinHostPort(u.Hostname(), u.Port())
	case u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
		p.meet = "file://" + u.Path
		p.path = u.Path
	case c.Method == "env://":
		w, err := env.Parse(overridden(set, os.LookupEnv))
		if err != nil {
			return p, err
		}
		p.rank, p.size, p.round = w.Rank, w.WorldSize, w.Round
		if !c.Ranked {
			p.here, p.local = w.LocalWorldSize, w.LocalRank
		}
		p.master, p.hosted = net.JoinHostPort(w.MasterAddr, strconv.Itoa(w.MasterPort)), w.StoreAddr != ""
		if p.hosted {
			p.master = w.StoreAddr
		}
		p.meet = "the store at " + p.master
		return p, nil
	default:
		return p, fmt.Errorf("init method %q: want env://, tcp://host:port or file:///path", c.Method)
	}
	// Other variables do not matter here. The method names the master.
	set["MASTER_ADDR"], set["MASTER_PORT"] = "localhost", "1"
	w, err := env.Parse(overridden(set, func(name string) (string, bool) {
		switch name {
		case "RANK", "WORLD_SIZE", "GORUN_ROUND":
			return os.LookupEnv(name)
		}
		return "", false
	}))
	p.rank, p.size, p.round = w.Rank, w.WorldSize, w.Round
	return p, err
}

func overridden(set map[string]string, lookup func(string) (string, bool)) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if v, ok := set[name]; ok {
			return v, true
		}
		return lookup(name)
	}
}
