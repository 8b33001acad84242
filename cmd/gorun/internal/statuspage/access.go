package statuspage

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/gorun/gorun/env/auth"
)

// An access says who may look: those who have the token, and this user and root, if they connect over loopback and mean loopback. Other
// users of this machine need the token too. A web site whose name leads to loopback (DNS rebinding) is not what a browser's user means.
type access struct {
	token string
}

const cookieName = "gorun_status"

// allows reports whether a request may look.
func (a access) allows(r *http.Request) bool {
	if a.token != "" {
		if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok && equal(bearer, a.token) {
			return true
		}
		if cookie, err := r.Cookie(cookieName); err == nil && equal(cookie.Value, a.session()) {
			return true
		}
	}
	return meansLoopback(r.Host) && isOwnUser(r)
}

// session is the value of the cookie. It does not reveal the token.
func (a access) session() string { return auth.Derive([]byte(a.token), "cookie of the status page") }

// equal compares in a time that depends on neither.
func equal(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

// meansLoopback reports whether the host in a request can only be this machine.
func meansLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// isCrossSite reports whether a page of another site, or of another port, makes the browser ask: such a page could not read the answer, but
// would use up streams. A link to this page may be anywhere.
func isCrossSite(r *http.Request) bool {
	switch site := r.Header.Get("Sec-Fetch-Site"); site {
	case "same-origin", "none":
		return false
	case "": // an old browser, or none; or this page is not at localhost, and without TLS
		origin := r.Header.Get("Origin")
		from, err := url.Parse(origin)
		return origin != "" && (err != nil || !strings.EqualFold(from.Host, r.Host))
	}
	isLink := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !isLink || r.Method != http.MethodGet || r.URL.Path != "/"
}

// isOwnUser reports whether a request comes over loopback, from this user or root.
func isOwnUser(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	here, err := netip.ParseAddrPort(local.String())
	if err != nil {
		return false
	}
	there, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !there.Addr().Unmap().IsLoopback() || !here.Addr().Unmap().IsLoopback() {
		return false
	}
	uid, err := peerUser(there, here)
	return err == nil && (uid == 0 || uid == os.Geteuid())
}

const loginPage = `<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>gorun</title><link rel="stylesheet" href="/page.css"></head>
<body><main><h1>gorun</h1><form method="post" action="/login">
<p><label>Token: <input type="password" name="token" autocomplete="current-password" required autofocus></label> <button>Log in</button></p>
<p>gorun has said in its log which file has the token.</p>
</form></main></body></html>
`

// refuse asks for the token.
func (a access) refuse(w http.ResponseWriter) {
	if a.token == "" {
		http.Error(w, "only the user who runs the job may look, from the same machine, at http://localhost", http.StatusForbidden)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(http.StatusUnauthorized)
	_, _ = io.WriteString(w, loginPage) // the client may be gone
}

// login sets a cookie for somebody who has the token.
func (a access) login(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	if a.token == "" || !equal(strings.TrimSpace(r.PostFormValue("token")), a.token) {
		a.refuse(w)
		return
	}
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: a.session(), Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	w.Header().Set("Location", "/")
	w.WriteHeader(http.StatusSeeOther)
}
