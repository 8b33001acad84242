package embedded

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
)

// A server without data either founds the cluster together with others that have none, or has lost what it had. In the
// second case it must not come back as the member that it was, for it might vote twice in one election. So it founds
// nothing unless one of the other servers has no data either, and none of them is a member of a cluster already that
// knows it or another server at its endpoint.

const (
	dialTime    = time.Second           // to connect to another server
	surveyTime  = time.Second           // for the first answer of another server
	firstPause  = 10 * time.Millisecond // between two surveys, for servers that start together; it doubles up to surveyPause
	surveyPause = 100 * time.Millisecond
	joinPause   = 300 * time.Millisecond // etcd lets members be changed only after seconds of quiet
	maxSurvey   = 1 << 20                // bytes of an answer
	maxTries    = 4                      // after which a try gets no more time than the last one
)

// timeOf is the time that a try has. It doubles with each one, for a busy machine may take longer to answer than the first ones allow.
func timeOf(first time.Duration, try int) time.Duration {
	return first << min(try, maxTries)
}

// foundingPath is where a server says, at the port for members, whether it founds the cluster.
const foundingPath = "/gorun/founding"

// A founding is the answer.
type founding struct {
	Cluster string `json:"cluster"` // of which job and endpoints
	Server  string `json:"server"`  // the name of this one, which no other has
	Founds  bool   `json:"founds"`  // it has no data, and is about to found the cluster, or to find out whether it may
}

func (s *Server) serveFounding(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(founding{s.config.cluster(), s.name, s.founds.Load()}) // who asks may be gone
}

// A report is what another server says.
type report struct {
	from    rendezvous.Endpoint
	founds  bool
	members []*membership.Member // of the cluster that it belongs to; nil: none
	err     error                // it says nothing, or belongs elsewhere
}

// survey asks all others, for at most limit.
func (s *Server) survey(ctx context.Context, limit time.Duration) (list []report) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	others := s.config.others()
	reports := make(chan report)
	for _, e := range others {
		go func() { reports <- s.ask(ctx, e) }()
	}
	for range others {
		list = append(list, <-reports)
	}
	return list
}

func (s *Server) ask(ctx context.Context, e rendezvous.Endpoint) report {
	r := report{from: e}
	var is founding
	if r.err = s.get(ctx, e, foundingPath, &is); r.err != nil {
		return r
	}
	if is.Cluster != s.config.cluster() {
		r.err = fmt.Errorf("%s is of %w, %.300q: give every node the same endpoints and job", e, errForeign, is.Cluster)
		return r
	}
	if r.founds = is.Founds; !r.founds {
		r.err = s.get(ctx, e, "/members", &r.members)
	}
	return r
}

// get reads JSON from the port that another server, or this one, has for members.
func (s *Server) get(ctx context.Context, from rendezvous.Endpoint, path string, to any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.peerURL(from)+path, nil)
	if err != nil {
		return err
	}
	answer, err := s.peerClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }() // it was only read
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s%s: %s", peerOf(from), path, answer.Status)
	}
	return readAnswer(answer.Body, to)
}

func readAnswer(from io.Reader, to any) error {
	return json.NewDecoder(io.LimitReader(from, maxSurvey)).Decode(to)
}

// A course is how a server without data begins.
type course int

const (
	waits  course = iota // for others
	founds               // the cluster, as one of its first members
	joins                // the cluster that there is
)

// decide decides from the answers of the others. own is who this server would be among the cluster's first members. A cluster that
// knows it as one that has never started needs it to found, perhaps for want of another; any other one has lost it.
func decide(reports []report, own *membership.Member) course {
	c := waits
	for _, r := range reports {
		switch {
		case r.members != nil && !awaits(r.members, own):
			return joins
		case r.members != nil || r.founds:
			c = founds
		}
	}
	return c
}

// awaits reports whether one of a cluster's first members is own, and has never started.
func awaits(members []*membership.Member, own *membership.Member) bool {
	return slices.ContainsFunc(members, func(m *membership.Member) bool {
		return m.ID == own.ID && !m.IsLearner && len(m.ClientURLs) == 0
	})
}

// founder is this server among the first members.
func (c *Config) founder() (*membership.Member, error) {
	e := c.etcd("", nil)
	urls, err := types.NewURLsMap(e.InitialCluster)
	if err != nil {
		return nil, err
	}
	cluster, err := membership.NewClusterFromURLsMap(zap.NewNop(), e.InitialClusterToken, urls)
	if err != nil {
		return nil, err
	}
	return cluster.MemberByName(e.Name), nil
}

// nobody says what to do about servers that are not there.
func (c *Config) nobody() string {
	return fmt.Sprintf("no other of its %d endpoints has joined: start gorun on their nodes, and let them reach each other's ports and the next ones", len(c.Members))
}

// membersOf are those who belong to a cluster.
func membersOf(reports []report) (list []rendezvous.Endpoint) {
	for _, r := range reports {
		if r.members != nil {
			list = append(list, r.from)
		}
	}
	return list
}

// begin returns when it is clear how this server begins: as one of the first members (nil), or as a member of a cluster,
// where those members are.
func (s *Server) begin(ctx context.Context) (members []rendezvous.Endpoint, err error) {
	own, err := s.config.founder()
	if err != nil {
		return nil, err
	}
	wait := s.config.nobody()
	for try := 0; ; try++ {
		reports := s.survey(ctx, timeOf(surveyTime, try))
		c := decide(reports, own)
		s.founds.Store(c != joins)
		var why string
		pause := min(timeOf(firstPause, try), surveyPause)
		switch c {
		case founds:
			return nil, nil
		case joins:
			members, err := s.join(ctx, own, membersOf(reports), timeOf(joinTime, try))
			if err == nil {
				return members, nil
			}
			pause = joinPause
			why = fmt.Sprintf("it has lost its data, and cannot become a member again: %v", err)
		case waits:
			why = s.config.nobody()
			if i := slices.IndexFunc(reports, func(r report) bool { return errors.Is(r.err, errForeign) }); i >= 0 {
				why = reports[i].err.Error()
			}
		}
		if ctx.Err() == nil { // otherwise that is all there is to why
			wait = why
		}
		s.config.Waiting(fmt.Sprintf("the rendezvous at %s: %s", s.config.Self, wait))
		if !network.Pause(ctx, pause) {
			return nil, fmt.Errorf("%w: %s", context.Cause(ctx), wait)
		}
	}
}

var (
	errForeign  = errors.New("another rendezvous")
	errOccupied = errors.New("another process answers at its address: end that one")
)
