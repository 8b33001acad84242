package embedded

import (
	"net/http"
	"net/url"
	"os"
)

// WithoutProxies makes net/http ignore the proxies that the environment names, for as long as this process lives: the members of an etcd
// would look for each other there, and etcd has no option against it. The variables stay as they are, for the programs that this process
// starts. Call it before anything else asks net/http, which reads them once.
func WithoutProxies() {
	const variable = "NO_PROXY"
	was, set := os.LookupEnv(variable)
	_ = os.Setenv(variable, "*") // the name is a good one
	_, _ = http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "http", Host: "example.org"}})
	if set {
		_ = os.Setenv(variable, was)
	} else {
		_ = os.Unsetenv(variable)
	}
}
