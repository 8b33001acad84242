// Package statuspage serves a page that shows a running job, and Prometheus metrics of this node (--status-addr):
//
//	GET  /         the page; /page.css, /page.js
//	GET  /events   server-sent events: a document (see document) at the beginning, and after each change
//	GET  /logs?rank=R
//	               server-sent events: lists of control.Line
//	GET  /metrics  in Prometheus' text format
//	POST /login    a form with the token, which sets a cookie
//
// Nothing can be changed. The page asks the agents of all nodes as gorun status does, only while somebody looks, and seldom enough not to
// disturb them. access.go says who may look.
package statuspage
