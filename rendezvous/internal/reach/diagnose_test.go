package reach_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpccredentials "google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/internal/reach"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func listen(t *testing.T) (net.Listener, rendezvous.Endpoint) {
	t.Helper()
	e := rendezvous.Endpoint{Host: "127.0.0.1", Port: testkit.ReservedPort(t)}
	l, err := net.Listen("tcp", e.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, e
}

// etcd starts a server.
func etcd(t *testing.T, secret string) rendezvous.Endpoint {
	t.Helper()
	l, self := listen(t)
	s, err := embedded.Start(t.Context(), embedded.Config{Listeners: []net.Listener{l}, Self: self, Job: t.Name(), Secret: []byte(secret)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, s) })
	return self
}

func closeNow(t *testing.T, s *embedded.Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

func credentials(t *testing.T, secret string) *tls.Config {
	t.Helper()
	c, err := embedded.ClientTLS([]byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each connection is served in a goroutine of its own, until the test ends.
func each(t *testing.T, handle func(net.Conn)) rendezvous.Endpoint {
	t.Helper()
	l, e := listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				handle(c)
			}()
		}
	}()
	return e
}

const right, wrong = "a secret of this very job", "a secret of another job"

// TestDiagnose: who is there, and what is wrong with them, with real ones of each kind.
func TestDiagnose(t *testing.T) {
	plain, secured := etcd(t, ""), etcd(t, right)

	closed, refused := listen(t)
	closed.Close()
	_, silent := listen(t) // nobody accepts
	ssh := each(t, func(c net.Conn) { _, _ = io.WriteString(c, "SSH-2.0-OpenSSH_9.2\r\n") })
	rude := each(t, func(net.Conn) {})
	listening := each(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })

	webListener, web := listen(t)
	webServer := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = webServer.Serve(webListener) }()
	t.Cleanup(func() { webServer.Close() })

	grpcListener, otherGRPC := listen(t)
	grpcServer := grpc.NewServer()
	go func() { _ = grpcServer.Serve(grpcListener) }()
	t.Cleanup(grpcServer.Stop)

	for name, c := range map[string]struct {
		target reach.Target
		kind   reach.Kind // 0: nothing is wrong
		want   string     // pattern
	}{
		"well":                  {reach.Target{Endpoints: []rendezvous.Endpoint{plain}}, 0, ""},
		"well with TLS":         {reach.Target{Endpoints: []rendezvous.Endpoint{secured}, TLS: credentials(t, right)}, 0, ""},
		"one of three":          {reach.Target{Endpoints: []rendezvous.Endpoint{refused, silent, plain}}, 0, ""},
		"user without need":     {reach.Target{Endpoints: []rendezvous.Endpoint{plain}, Username: "u", Password: "p"}, 0, ""},
		"no such host":          {reach.Target{Endpoints: []rendezvous.Endpoint{{Host: "nowhere.invalid", Port: 1}}}, reach.NoSuchHost, `^nowhere\.invalid:1: (no such host: correct|the name cannot be looked up)`},
		"refused":               {reach.Target{Endpoints: []rendezvous.Endpoint{refused}}, reach.Refused, `: connection refused: nothing listens there; start gorun on that node, or correct the port$`},
		"refused who looks":     {reach.Target{Endpoints: []rendezvous.Endpoint{refused}, Looks: true}, reach.Refused, `: connection refused: no job runs there, or the port differs$`},
		"SSH who looks":         {reach.Target{Endpoints: []rendezvous.Endpoint{ssh}, Looks: true}, reach.Stranger, `: correct the endpoint$`},
		"silent":                {reach.Target{Endpoints: []rendezvous.Endpoint{silent}}, reach.Silent, `: it accepts connections but sends nothing`},
		"silent with TLS":       {reach.Target{Endpoints: []rendezvous.Endpoint{silent}, TLS: credentials(t, right)}, reach.Silent, `: it accepts connections but sends nothing`},
		"listening":             {reach.Target{Endpoints: []rendezvous.Endpoint{listening}}, reach.Silent, `: it accepts connections but sends nothing`},
		"SSH":                   {reach.Target{Endpoints: []rendezvous.Endpoint{ssh}}, reach.Stranger, `: another service listens there \(it says "SSH-2\.0-OpenSSH_9\.2\\r\\n"\): choose another port$`},
		"SSH with TLS":          {reach.Target{Endpoints: []rendezvous.Endpoint{ssh}, TLS: credentials(t, right)}, reach.Stranger, `: another service listens there`},
		"web":                   {reach.Target{Endpoints: []rendezvous.Endpoint{web}}, reach.Stranger, `: another service listens there \(it says "HTTP/1\.1 `},
		"hangs up":              {reach.Target{Endpoints: []rendezvous.Endpoint{rude}}, reach.HangsUp, `: it accepts connections and closes them: it is an etcd that is starting or ending, or another service$`},
		"another gRPC":          {reach.Target{Endpoints: []rendezvous.Endpoint{otherGRPC}}, reach.Stranger, `: it does not answer as an etcd does \("unknown service etcdserverpb\.Maintenance"\): choose another port$`},
		"TLS wanted":            {reach.Target{Endpoints: []rendezvous.Endpoint{secured}}, reach.Credentials, `: it requires TLS: give this node the --rdzv-token-file of the others`},
		"TLS not spoken":        {reach.Target{Endpoints: []rendezvous.Endpoint{plain}, TLS: credentials(t, right)}, reach.Credentials, `: it was started without TLS: give every node the same`},
		"wrong secret":          {reach.Target{Endpoints: []rendezvous.Endpoint{secured}, TLS: credentials(t, wrong)}, reach.Credentials, `: its certificate is not trusted \(signed by an authority .*\): give every node the same --rdzv-token-file`},
		"no certificate":        {reach.Target{Endpoints: []rendezvous.Endpoint{secured}, TLS: &tls.Config{InsecureSkipVerify: true}}, reach.Credentials, `: it does not accept this node's certificate \(tls: certificate required\): give every node`},
		"another's certificate": {reach.Target{Endpoints: []rendezvous.Endpoint{secured}, TLS: &tls.Config{InsecureSkipVerify: true, GetClientCertificate: credentials(t, wrong).GetClientCertificate}}, reach.Credentials, `: it does not accept this node's certificate \(tls: `},
	} {
		t.Run(name, func(t *testing.T) {
			c.target.Hosted = true
			expect(t, c.target, c.kind, c.want)
		})
	}

	err := reach.Diagnose(t.Context(), reach.Target{Endpoints: []rendezvous.Endpoint{ssh, refused}})
	if lines := strings.Split(err.Error(), "\n"); len(lines) != 2 || !strings.HasPrefix(lines[0], ssh.String()) || !strings.HasPrefix(lines[1], refused.String()) {
		t.Errorf("two endpoints: %v", err)
	}
}

// TestDiagnoseAlone: of an etcd that no node hosts, other advice is of use.
func TestDiagnoseAlone(t *testing.T) {
	plain, secured := etcd(t, ""), etcd(t, right)
	closed, refused := listen(t)
	closed.Close()
	for want, target := range map[string]reach.Target{
		`nothing listens there; start etcd, or correct the endpoint$`:                                                            {Endpoints: []rendezvous.Endpoint{refused}},
		`it requires TLS: give the --rdzv-token-file of gorun etcd; for another etcd ca_cert= in --rdzv-conf, or protocol=https`: {Endpoints: []rendezvous.Endpoint{secured}},
		`started without TLS: leave protocol=https and certificates out of --rdzv-conf$`:                                         {Endpoints: []rendezvous.Endpoint{plain}, TLS: credentials(t, right)},
		`its certificate is not trusted \(signed by an authority .*\): correct ca_cert= in --rdzv-conf`:                          {Endpoints: []rendezvous.Endpoint{secured}, TLS: credentials(t, wrong)},
		`it does not accept this node's certificate \(.*\): give ssl_cert= and ssl_cert_key`:                                     {Endpoints: []rendezvous.Endpoint{secured}, TLS: &tls.Config{InsecureSkipVerify: true}},
	} {
		if err := reach.Diagnose(t.Context(), target); err == nil || !regexp.MustCompile(want).MatchString(err.Error()) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func expect(t *testing.T, target reach.Target, kind reach.Kind, pattern string) {
	t.Helper()
	expectOf(t, reach.Diagnose(t.Context(), target), kind, pattern)
}

// expectOf checks a diagnosis.
func expectOf(t *testing.T, err error, kind reach.Kind, pattern string) {
	t.Helper()
	if kind == 0 {
		if err != nil {
			t.Errorf("got %v", err)
		}
		return
	}
	var p *reach.Problem
	if !errors.As(err, &p) || p.Kind != kind || !regexp.MustCompile(pattern).MatchString(err.Error()) || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v, want kind %d and %s", err, kind, pattern)
	}
}

// TestDiagnoseByName: a certificate is held against the name in the endpoint, not against what it means.
func TestDiagnoseByName(t *testing.T) {
	public, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, public, key)
	if err != nil {
		t.Fatal(err)
	}
	if cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	l, e := listen(t)
	server := grpc.NewServer(grpc.Creds(grpccredentials.NewServerTLSFromCert(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	roots := x509.NewCertPool()
	roots.AddCert(cert)
	for host, c := range map[string]struct {
		kind reach.Kind
		want string
	}{
		"localhost": {reach.Stranger, `unknown service`},
		"127.0.0.1": {reach.Credentials, `its certificate is not trusted \(x509: `},
	} {
		expect(t, reach.Target{Endpoints: []rendezvous.Endpoint{{Host: host, Port: e.Port}}, TLS: &tls.Config{RootCAs: roots}}, c.kind, c.want)
	}
}

// TestDiagnoseLogin: an etcd with users tells whom it lets in.
func TestDiagnoseLogin(t *testing.T) {
	e := etcd(t, "")
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{e.String()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx := t.Context()
	var errs []error
	do := func(_ any, err error) { errs = append(errs, err) }
	do(c.UserAdd(ctx, "root", "toor"))
	do(c.UserGrantRole(ctx, "root", "root"))
	do(c.UserAdd(ctx, "agent", "007"))
	do(c.AuthEnable(ctx))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, u := range []struct {
		name, password string
		kind           reach.Kind
		want           string
	}{
		{"root", "toor", 0, ""},
		{"agent", "007", 0, ""}, // who may do nothing is somebody
		{"agent", "008", reach.Login, `: its etcd knows no such user with this password: correct`},
		{"nobody", "007", reach.Login, `: its etcd knows no such user with this password: correct`},
		{"", "", reach.Login, `: its etcd requires a user name: give`},
	} {
		target := reach.Target{Endpoints: []rendezvous.Endpoint{e}, Username: u.name, Password: u.password}
		err := reach.Diagnose(t.Context(), target)
		for tooBusy(err) { // to hash a password within the time of a diagnosis
			err = reach.Diagnose(t.Context(), target)
		}
		expectOf(t, err, u.kind, u.want)
	}
}

// tooBusy reports whether an etcd that has a leader has not answered in time.
func tooBusy(err error) bool {
	var p *reach.Problem
	return errors.As(err, &p) && p.Kind == reach.NoLeader
}

// TestASilentServerIsGreetedOnce: a server of the job that is starting reads later what has been said to it. It must not take one of its own
// nodes for a stranger, who does not speak TLS.
func TestASilentServerIsGreetedOnce(t *testing.T) {
	l, e := listen(t)
	expect(t, reach.Target{Endpoints: []rendezvous.Endpoint{e}, TLS: credentials(t, right), Hosted: true}, reach.Silent, "")
	last, err := net.Dial("tcp", e.String())
	if err != nil {
		t.Fatal(err)
	}
	defer last.Close()
	for greetings := 0; ; greetings++ {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if c.RemoteAddr().String() == last.LocalAddr().String() {
			if greetings != 1 {
				t.Errorf("%d greetings", greetings)
			}
			return
		}
	}
}

// TestTroubleIsNoMistake: whoever does not answer in time, or cannot now, may do so later. A server that speaks gRPC answers
// with each code, to the first question and to a later one.
func TestTroubleIsNoMistake(t *testing.T) {
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		for _, first := range []bool{true, false} {
			l, e := listen(t)
			server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
				method, _ := grpc.MethodFromServerStream(s)
				if !first && method == "/etcdserverpb.Maintenance/Status" {
					return s.SendMsg(&pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 2}, Leader: 2})
				}
				return status.Error(code, "trouble")
			}))
			go func() { _ = server.Serve(l) }()
			err := reach.Diagnose(t.Context(), reach.Target{Endpoints: []rendezvous.Endpoint{e}})
			var p *reach.Problem
			if !errors.As(err, &p) {
				t.Fatalf("%v: got %v, want a Problem", code, err)
			}
			later := []codes.Code{codes.Canceled, codes.DeadlineExceeded, codes.ResourceExhausted, codes.Aborted, codes.Unavailable}
			if want := first && !slices.Contains(later, code); p.Lasting() != want {
				t.Errorf("%v, to the first question: %t: lasting: %t (%v)", code, first, p.Lasting(), err)
			}
			server.Stop()
		}
	}
}

// TestDiagnoseOnlyMember: an etcd that answers no question has no other members to start.
func TestDiagnoseOnlyMember(t *testing.T) {
	l, e := listen(t)
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		switch method, _ := grpc.MethodFromServerStream(s); method {
		case "/etcdserverpb.Maintenance/Status":
			return s.SendMsg(&pb.StatusResponse{Header: &pb.ResponseHeader{ClusterId: 1, MemberId: 2}, Leader: 2})
		case "/etcdserverpb.Cluster/MemberList":
			return s.SendMsg(&pb.MemberListResponse{Members: []*pb.Member{{ID: 2}}})
		default: // its disk is full
			<-s.Context().Done()
			return s.Context().Err()
		}
	}))
	go func() { _ = server.Serve(l) }()
	t.Cleanup(server.Stop)
	expect(t, reach.Target{Endpoints: []rendezvous.Endpoint{e}}, reach.NoLeader, `: its etcd, which has no other members, does not answer: check its log, and whether its disk is full or slow$`)
}

// TestDiagnoseNoDescriptor: that this process has no descriptor left says nothing of the address.
func TestDiagnoseNoDescriptor(t *testing.T) {
	_, e := listen(t)
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 0
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
	}()
	expect(t, reach.Target{Endpoints: []rendezvous.Endpoint{e}}, reach.Exhausted, `: this node cannot connect to it \(socket: too many open files\): allow more open files \(ulimit -n\)$`)
}

// TestDiagnoseNoLeader: a member whose others are gone answers, and is of no use.
func TestDiagnoseNoLeader(t *testing.T) {
	var members []rendezvous.Endpoint
	var listeners []net.Listener
	for len(members) < 3 {
		l, e := listen(t)
		members, listeners = append(members, e), append(listeners, l)
	}
	type result struct {
		*embedded.Server
		error
	}
	started := make(chan result)
	for i, l := range listeners {
		go func() {
			s, err := embedded.Start(t.Context(), embedded.Config{Listeners: []net.Listener{l}, Self: members[i], Members: members, Job: t.Name()})
			started <- result{s, err}
		}()
	}
	var servers []*embedded.Server
	for range listeners {
		r := <-started
		if r.error != nil {
			t.Fatal(r.error)
		}
		servers = append(servers, r.Server)
	}
	target := reach.Target{Endpoints: members}
	expect(t, target, 0, "")
	closeNow(t, servers[0])
	expect(t, target, 0, "")
	closeNow(t, servers[1])
	err := reach.Diagnose(t.Context(), target)
	if err == nil || strings.Count(err.Error(), "connection refused") != 2 || strings.Count(err.Error(), "its etcd has no leader, or does not answer in time: start its other members") != 1 {
		t.Errorf("got %v", err)
	}
	closeNow(t, servers[2])
}
