package main

import (
	"context"
	"net"
	"net/url"
	"strconv"
	"syscall"

	"github.com/rogpeppe/go-internal/testscript"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/gorun/gorun/env/testing/testkit"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
)

// etcd NAME KIND runs an etcd on 127.0.0.1 until the script ends, and sets a variable to its port. Kinds: plain; tls and
// mutual, where clients need certificates, too; users: agent, whose role is for the keys below /gorun/v1/, and guest, who has
// none.
func serveEtcd(ts *testscript.TestScript, _ bool, args []string) {
	name, kind := args[0], args[1]
	port := findPort(ts)
	c := embed.NewConfig()
	c.Dir = ts.MkAbs("etcd-" + name)
	c.TickMs, c.ElectionMs = 10, 100
	c.UnsafeNoFsync = true
	c.BcryptCost = 4
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	c.ListenPeerUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.AdvertisePeerUrls = c.ListenPeerUrls
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	switch kind {
	case "mutual":
		c.ClientTLSInfo.TrustedCAFile, c.ClientTLSInfo.ClientCertAuth = ts.MkAbs("ca.pem"), true
		fallthrough
	case "tls":
		c.ClientTLSInfo.CertFile, c.ClientTLSInfo.KeyFile = ts.MkAbs("server.pem"), ts.MkAbs("server.key")
	}
	c.ListenClientUrls = []url.URL{{Scheme: "http", Host: "127.0.0.1:" + port}}
	if !c.ClientTLSInfo.Empty() {
		c.ListenClientUrls[0].Scheme = "https"
	}
	c.AdvertiseClientUrls = c.ListenClientUrls
	e, err := embed.StartEtcd(c)
	ts.Check(err)
	ts.Defer(e.Close)
	<-e.Server.ReadyNotify()
	if kind == "users" {
		addUsers(ts, port)
	}
	ts.Setenv(name, port)
}

func addUsers(ts *testscript.TestScript, port string) {
	withClient(ts, port, func(ctx context.Context, c *clientv3.Client) {
		const prefix = "/gorun/v1/"
		_, err := c.RoleAdd(ctx, "gorun")
		ts.Check(err)
		_, err = c.RoleGrantPermission(ctx, "gorun", prefix, clientv3.GetPrefixRangeEnd(prefix), clientv3.PermissionType(clientv3.PermReadWrite))
		ts.Check(err)
		for user, role := range map[string]string{"root": "root", "agent": "gorun", "guest": ""} {
			_, err := c.UserAdd(ctx, user, "007")
			ts.Check(err)
			if role != "" {
				_, err = c.UserGrantRole(ctx, user, role)
				ts.Check(err)
			}
		}
		_, err = c.AuthEnable(ctx)
		ts.Check(err)
	})
}

func withClient(ts *testscript.TestScript, port string, do func(context.Context, *clientv3.Client)) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{"127.0.0.1:" + port}, Logger: zap.NewNop()})
	ts.Check(err)
	defer func() { _ = c.Close() }() // what it has done was answered
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	do(ctx, c)
}

// putKey PORT KEY VALUE writes to an etcd.
func putKey(ts *testscript.TestScript, _ bool, args []string) {
	withClient(ts, args[0], func(ctx context.Context, c *clientv3.Client) {
		_, err := c.Put(ctx, args[1], args[2])
		ts.Check(err)
	})
}

// keys PORT PREFIX waits until an etcd has a key that begins so; with ! until it has none.
func keys(ts *testscript.TestScript, neg bool, args []string) {
	withClient(ts, args[0], func(ctx context.Context, c *clientv3.Client) {
		changes := c.Watch(ctx, args[1], clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		for range changes {
			answer, err := c.Get(ctx, args[1], clientv3.WithPrefix(), clientv3.WithCountOnly())
			ts.Check(err)
			if neg == (answer.Count == 0) {
				return
			}
		}
		ts.Fatalf("waited in vain for keys below %s", args[1])
	})
}

// leaderless NAME sets a variable to the port of an etcd's only member of three.
func leaderless(ts *testscript.TestScript, _ bool, args []string) {
	var members []rendezvous.Endpoint
	for range 3 {
		port, err := strconv.Atoi(findPort(ts))
		ts.Check(err)
		members = append(members, rendezvous.Endpoint{Host: "127.0.0.1", Port: port})
	}
	servers := make(chan *embedded.Server)
	for i, self := range members {
		go func() {
			l, err := net.Listen("tcp", self.String())
			if err != nil {
				servers <- nil
				return
			}
			s, _ := embedded.Start(context.Background(), embedded.Config{ // nil, if it fails
				Listeners: []net.Listener{l}, Self: self, Members: members, Job: "leaderless", Dir: ts.MkAbs("member" + strconv.Itoa(i)),
			})
			servers <- s
		}()
	}
	var others []*embedded.Server
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for range members {
		s := <-servers
		switch {
		case s == nil:
			ts.Fatalf("a member of three has not started")
		case s.Endpoint() == members[0]:
			ts.Defer(func() { _ = s.Close(now) }) // it has nobody to hand over to
		default:
			others = append(others, s)
		}
	}
	for _, s := range others {
		ts.Check(s.Close(now))
	}
	ts.Setenv(args[0], strconv.Itoa(members[0].Port))
}

// deaf NAME sets a variable to a port that answers nobody: more wait to be accepted than may.
func deaf(ts *testscript.TestScript, _ bool, args []string) {
	fd, err := testkit.Socket()
	ts.Check(err)
	ts.Defer(func() { _ = syscall.Close(fd) })
	ts.Check(syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}))
	ts.Check(syscall.Listen(fd, 0))
	at, err := syscall.Getsockname(fd)
	ts.Check(err)
	port := strconv.Itoa(at.(*syscall.SockaddrInet4).Port)
	first, err := net.Dial("tcp", "127.0.0.1:"+port) // takes the only place
	ts.Check(err)
	ts.Defer(func() { _ = first.Close() })
	ts.Setenv(args[0], port)
}

// greeter NAME sets a variable to a port where another service says what it is.
func greeter(ts *testscript.TestScript, _ bool, args []string) {
	l := listenHere(ts)
	ts.Defer(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("220 mail.example ESMTP\r\n"))
			_ = c.Close()
		}
	}()
	ts.Setenv(args[0], strconv.Itoa(l.Addr().(*net.TCPAddr).Port))
}
