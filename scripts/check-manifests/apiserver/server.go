package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"go.etcd.io/etcd/server/v3/embed"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/keyutil"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// startTimeout bounds the start of the server.
const startTimeout = 2 * time.Minute

// A server is a running API server.
type server struct {
	dir     string
	etcd    *embed.Etcd
	kinds   *discovery.DiscoveryClient
	objects *dynamic.DynamicClient
	cancel  context.CancelFunc
	ended   chan error
}

// start starts an API server whose files are in a directory, and returns when it serves JobSets.
func start(ctx context.Context, dir string) (*server, error) {
	s := &server{dir: dir}
	logFile := filepath.Join(dir, "apiserver.log")
	log, err := os.Create(logFile)
	if err != nil {
		return nil, err
	}
	logging := flag.NewFlagSet("", flag.ContinueOnError)
	klog.InitFlags(logging)
	if err := logging.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
		return nil, err
	}
	klog.SetOutput(log)
	ctx, s.cancel = context.WithCancel(ctx)
	if err = s.startEtcd(); err == nil {
		err = s.startAPI(ctx)
	}
	if err == nil {
		err = s.addJobSet(ctx)
	}
	if err != nil {
		said, _ := os.ReadFile(logFile)
		s.stop()
		return nil, fmt.Errorf("%w\n%s", err, said)
	}
	return s, nil
}

// stop ends the server.
func (s *server) stop() {
	s.cancel()
	if s.ended != nil {
		<-s.ended
	}
	if s.etcd != nil {
		s.etcd.Close()
	}
}

// socket is where etcd listens.
func (s *server) socket() string { return filepath.Join(s.dir, "etcd.sock") }

func (s *server) startEtcd() error {
	config := embed.NewConfig()
	config.Dir, config.LogOutputs = filepath.Join(s.dir, "etcd"), []string{filepath.Join(s.dir, "etcd.log")}
	// It advertises its default addresses, at which nobody listens: there is no other member.
	config.ListenClientUrls = []url.URL{{Scheme: "unix", Path: s.socket()}}
	config.ListenPeerUrls = []url.URL{{Scheme: "unix", Path: s.socket() + "-peers"}}
	var err error
	if s.etcd, err = embed.StartEtcd(config); err != nil {
		return err
	}
	select {
	case <-s.etcd.Server.ReadyNotify():
		return nil
	case <-time.After(startTimeout):
		return errors.New("etcd does not start")
	}
}

// startAPI starts the API server on loopback, where only this process gets in.
func (s *server) startAPI(ctx context.Context) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pem, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return err
	}
	keyFile := filepath.Join(s.dir, "service-accounts")
	if err := os.WriteFile(keyFile, pem, 0o600); err != nil {
		return err
	}
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse([]string{
		"--etcd-servers=unix://" + s.socket(), "--cert-dir=" + filepath.Join(s.dir, "certificates"), "--anonymous-auth=false", "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default", "--service-account-key-file=" + keyFile, "--service-account-signing-key-file=" + keyFile,
		"--service-cluster-ip-range=10.96.0.0/24", "--disable-admission-plugins=ServiceAccount", // nobody makes the account of a pod here
	}); err != nil {
		return err
	}
	if o.SecureServing.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	o.SecureServing.BindAddress, o.SecureServing.BindPort = net.IPv4(127, 0, 0, 1), o.SecureServing.Listener.Addr().(*net.TCPAddr).Port
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(completed.Validate()...); err != nil {
		return err
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return err
	}
	complete, err := config.Complete()
	if err != nil {
		return err
	}
	chain, err := app.CreateServerChain(complete)
	if err != nil {
		return err
	}
	prepared, err := chain.PrepareRun()
	if err != nil {
		return err
	}
	client := rest.CopyConfig(chain.GenericAPIServer.LoopbackClientConfig) // who has it may do everything
	if s.kinds, err = discovery.NewDiscoveryClientForConfig(client); err != nil {
		return err
	}
	if s.objects, err = dynamic.NewForConfig(client); err != nil {
		return err
	}
	s.ended = make(chan error, 1)
	go func() { s.ended <- prepared.Run(ctx) }()
	return nil
}

// addJobSet gives the server JobSet's resource, of the version that check-manifests decodes.
func (s *server) addJobSet(ctx context.Context) error {
	module, err := exec.CommandContext(ctx, "go", "list", "-C", "..", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		return fmt.Errorf("run it in scripts/check-manifests/apiserver: %w", err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(module)), "config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"))
	if err != nil {
		return err
	}
	if err := try(ctx, func() error { return s.create(ctx, text, metav1.CreateOptions{}) }); err != nil {
		return err
	}
	return try(ctx, func() error {
		_, err := s.resource(schema.FromAPIVersionAndKind("jobset.x-k8s.io/v1alpha2", "JobSet"))
		if err == nil {
			_, err = s.objects.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(ctx, namespace, metav1.GetOptions{})
		}
		return err
	})
}

// try calls f until it succeeds.
func try(ctx context.Context, f func() error) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, startTimeout, true, func(context.Context) (bool, error) {
		last = f()
		return last == nil, nil
	})
	if err != nil {
		return last
	}
	return nil
}
