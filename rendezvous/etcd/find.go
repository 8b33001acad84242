package etcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/gorun/gorun/env/network"
	"github.com/gorun/gorun/rendezvous"
	"github.com/gorun/gorun/rendezvous/embedded"
	"github.com/gorun/gorun/rendezvous/internal/reach"
)

// targetOf reads what lets this node in.
func targetOf(a rendezvous.Access) (t reach.Target, err error) {
	t = reach.Target{Endpoints: a.Endpoints, Hosted: a.Hosted, Looks: a.Looks, Username: a.User}
	if a.PasswordFile != "" {
		text, err := os.ReadFile(a.PasswordFile)
		if err != nil {
			return t, misuse(fmt.Errorf("cannot read the password: %w", err))
		}
		t.Password = string(bytes.TrimRight(text, "\r\n"))
	}
	switch {
	case a.Secret != "":
		t.TLS, err = embedded.ClientTLS([]byte(a.Secret))
	case a.TLS:
		t.TLS, err = certificates(a)
	}
	if err != nil {
		err = misuse(err)
	}
	return t, err
}

// certificates are those of files. Without a CA the system's are believed.
func certificates(a rendezvous.Access) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		text, err := os.ReadFile(a.CA)
		if err != nil {
			return nil, fmt.Errorf("cannot read ca_cert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca_cert: no certificate in %s: want PEM", a.CA)
		}
	}
	if a.Cert == "" {
		return c, nil
	}
	if _, err := tls.LoadX509KeyPair(a.Cert, a.Key); err != nil {
		return nil, fmt.Errorf("ssl_cert and ssl_cert_key: %w", err)
	}
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		own, err := tls.LoadX509KeyPair(a.Cert, a.Key) // it may have been renewed
		return &own, err
	}
	return c, nil
}

// misuse marks an error that waiting does not mend.
func misuse(err error) error { return &rendezvous.MisuseError{Err: err} }

// askPause is between two looks at an etcd that is not there yet. At first it is shorter: as a rule, all nodes start at
// about the same time.
const (
	askPause      = 500 * time.Millisecond
	firstAskPause = 10 * time.Millisecond
)

// await returns when an etcd can be used. As long as there is none, it calls host, which reports whether this node hosts one now. tell gets what await
// waits for. It gives up when ctx ends or waiting does not help.
func await(ctx context.Context, t reach.Target, tell func(string), host func() (bool, error)) error {
	var why error
	for wait := firstAskPause; ; wait = min(2*wait, askPause) {
		err := reach.Diagnose(ctx, t)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && why != nil: // it has been cut short
		case !slices.ContainsFunc(problems(err), func(p *reach.Problem) bool { return !p.Lasting() }):
			return misuse(err)
		default:
			if hosts, err := host(); hosts || err != nil {
				return err
			}
			why = err
			tell(why.Error())
		}
		if !network.Pause(ctx, wait) {
			return fmt.Errorf("%w: %w", context.Cause(ctx), why)
		}
	}
}

// oneLine is an error in one line.
func oneLine(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
}

// problems are those of a diagnosis, one for each endpoint.
func problems(err error) (list []*reach.Problem) {
	if several, ok := err.(interface{ Unwrap() []error }); ok {
		for _, err := range several.Unwrap() {
			list = append(list, problems(err)...)
		}
	} else if p, ok := errors.AsType[*reach.Problem](err); ok {
		list = append(list, p)
	}
	return list
}

// address is where the other nodes reach this one: the address that it has on the way to where they meet. A host's own name
// often means loopback to itself; that endpoint's host is what others call it.
func address(ctx context.Context, endpoints []rendezvous.Endpoint) string {
	for _, e := range endpoints {
		own, err := network.FacingAddr(ctx, e.Host)
		switch {
		case err != nil:
		case own.IsLoopback() && !e.IsLoopback():
			return e.Host
		default:
			return own.String()
		}
	}
	return ""
}
