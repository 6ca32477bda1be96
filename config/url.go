package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// SQLitePath returns the file of an embedded database; false means PostgreSQL.
func (d Database) SQLitePath() (string, bool) {
	return strings.CutPrefix(d.URL.Reveal(), "sqlite:")
}

// Redacted returns the URL without the password and other parameters that might be secret.
func (d Database) Redacted() string {
	text, _ := showURL(d.URL.Reveal(), true, harmless)
	return text
}

// harmless are the connection parameters whose values may be shown. All others are hidden, because drivers keep adding
// parameters with secrets.
var harmless = map[string]bool{
	"sslmode": true, "sslrootcert": true, "sslcert": true, "host": true, "port": true, "user": true, "dbname": true,
	"database":         true,
	"application_name": true, "connect_timeout": true, "target_session_attrs": true, "search_path": true,
	"statement_timeout": true,
	"timezone":          true, "default_query_exec_mode": true, "synchronous_commit": true, "pool_max_conns": true,
}

// showURL writes a URL without its secrets; whole is true if nothing was omitted. It splits the text itself, because a
// URL that does not parse (an unescaped password, several hosts) must not be shown either.
func showURL(raw string, userShown bool, params map[string]bool) (text string, whole bool) {
	if raw == "" || strings.HasPrefix(raw, "sqlite:") {
		return raw, true
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return hidden, false
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	authority, path, hasPath := strings.Cut(rest, "/")
	// A later @ or # shows that a password with / ? or # was split.
	if strings.Contains(path+query, "@") || strings.Contains(raw, "#") {
		return scheme + "://" + hidden, false
	}
	whole = true
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, _, hasPassword := strings.Cut(authority[:at], ":")
		switch {
		case !userShown:
			user, whole = hidden, false
		case hasPassword:
			user, whole = user+":"+hidden, false
		}
		authority = user + authority[at:]
	}
	text = scheme + "://" + authority
	if hasPath {
		text += "/" + path
	}
	if !hasQuery {
		return text, whole
	}
	parts := strings.Split(query, "&")
	for i, part := range parts {
		name, value, _ := strings.Cut(part, "=")
		if value != "" && !params[strings.ToLower(name)] {
			parts[i], whole = name+"="+hidden, false
		}
	}
	return text + "?" + strings.Join(parts, "&"), whole
}

// databaseProblem checks the database's URL without repeating any of it.
func databaseProblem(raw string) string {
	if path, ok := strings.CutPrefix(raw, "sqlite:"); ok {
		switch {
		case path == "":
			return "has no file after sqlite:"
		case strings.HasPrefix(path, "//") && !strings.HasPrefix(path, "///"):
			return "must be written sqlite:PATH, without //"
		case strings.HasPrefix(path, ":memory:") || strings.HasPrefix(path, "file:") || strings.Contains(path, "?"):
			return "must name a file, without parameters: state in memory would not survive"
		}
		return ""
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return "must be sqlite:PATH, postgres://… or postgresql://…"
	}
	rest, query, _ := strings.Cut(rest, "?")
	authority, path, _ := strings.Cut(rest, "/")
	if strings.Contains(path+query, "@") || strings.Contains(raw, "#") || strings.Count(authority, "@") > 1 {
		return "cannot be parsed: percent-encode @ : / ? # in user name and password"
	}
	user, hosts := "", authority
	if at := strings.LastIndex(authority, "@"); at >= 0 {
		user, hosts = authority[:at+1], authority[at+1:]
	}
	for host := range strings.SplitSeq(hosts, ",") {
		// Several hosts are valid for PostgreSQL and invalid for net/url.
		if _, err := url.Parse("postgres://" + user + host + "/" + path + "?" + query); err != nil {
			return "is not a valid URL"
		}
	}
	if _, err := url.ParseQuery(query); err != nil {
		return "has parameters that cannot be read"
	}
	return ""
}

// splitAddr splits host:port. An empty host means every interface.
func splitAddr(addr string, freePort bool) (host string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", errors.New("must be host:port")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 && !freePort {
		return "", errors.New("must end in a port from 1 to 65535")
	}
	if host != "" && !validHost(host) {
		return "", errors.New("must start with an IP address or a host name")
	}
	return host, nil
}

// validHost accepts an IP address or a name of letters, digits, dots and dashes (and underscores, which container
// networks use).
func validHost(host string) bool {
	if _, ok := parseIP(host); ok {
		return true
	}
	if host == "" || len(host) > 253 || strings.ContainsAny(host[:1], ".-") || strings.Contains(host, "..") {
		return false
	}
	return strings.IndexFunc(host, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '-' || r == '_')
	}) < 0
}

func parseIP(host string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(host)
	return a.Unmap(), err == nil
}

// Loopback reports whether a host is only this machine. The name localhost is trusted (RFC 6761).
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, ok := parseIP(host)
	return ok && ip.IsLoopback()
}

// origins refuses values that are no origins.
func (k *checker) origins(key string, all []string) {
	for _, o := range all {
		if problem := originProblem(o); problem != "" {
			k.refuse(true, key, quote(o)+" "+problem)
		}
	}
}
