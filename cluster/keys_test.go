package cluster

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

// folders creates the keys of a cluster with one node for each name.
func folders(t *testing.T, names ...string) (dirs []string) {
	t.Helper()
	top := t.TempDir()
	for i, name := range names {
		dirs = append(dirs, filepath.Join(top, name))
		var err error
		if i == 0 {
			err = InitKeys(dirs[0], "")
		} else {
			err = NodeKeys(dirs[0], dirs[i], "")
		}
		storetest.Must(t, err)
	}
	return dirs
}

func load(t *testing.T, dir string) *Keys {
	t.Helper()
	return storetest.Value(LoadKeys(dir))(t)
}

// certificate returns a certificate by the authority in dir, with these URIs.
func certificate(t *testing.T, dir string, uris ...string) tls.Certificate {
	t.Helper()
	pair := storetest.Value(tls.LoadX509KeyPair(filepath.Join(dir, caCert), filepath.Join(dir, caKey)))(t)
	key := storetest.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: serial(), DNSNames: []string{nodeName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	for _, u := range uris {
		parsed := storetest.Value(url.Parse(u))(t)
		template.URIs = append(template.URIs, parsed)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	storetest.Must(t, err)
	c := tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
	if c.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	return c
}

// A certificate of the cluster's authority is accepted only for the member that it names.
func TestOnlyNamedMembersConnect(t *testing.T) {
	dirs := folders(t, "node-1", "node-2")
	a := member(t, newCast(), load(t, dirs[0]))
	two := load(t, dirs[1])
	greet := func(shows tls.Certificate, id string) (string, error) {
		config := two.config()
		config.Certificates = []tls.Certificate{shows}
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", a.membership.o.ActorAddr)
		if err != nil {
			return "", err
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := conn.Write((&frame{op: opHello, id: id, kind: a.Address()}).append(nil)); err != nil {
			return "", err
		}
		f, _, err := readFrame(conn, nil)
		return f.id, err
	}
	const at = "10.0.0.9:7947~1"
	// Without a name: the previous version of the program, and operators.
	for _, ok := range []string{at + "~node-2", at, "status"} {
		if id, err := greet(two.now.Load().node, ok); err != nil || id != a.Address() {
			t.Errorf("%s is not answered: %q, %v", ok, id, err)
		}
	}
	for _, uris := range [][]string{nil, {"castellan://operator/node-2"}, {"castellan://member/"},
		{"https://member/node-2"}, {"castellan://member/node-2", "castellan://member/node-1"},
		{"castellan://member/Node-2"}, {"castellan://member/a/b"}, {"castellan://member/node-2?x"}} {
		if id, err := greet(certificate(t, dirs[0], uris...), at+"~node-2"); err == nil {
			t.Errorf("%v is a member's, and %s answers", uris, id)
		}
	}
	for _, id := range []string{at + "~node-1", at + "~", at + "~node-2~"} {
		if answer, err := greet(two.now.Load().node, id); err == nil {
			t.Errorf("node-2 passes for %s, and %s answers", id, answer)
		}
	}
	// A node neither dials such a member nor starts with such a certificate.
	for uri, wrong := range map[string]bool{"castellan://operator/x": true, "castellan://member/node-3": false} {
		state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{certificate(t, dirs[0], uri).Leaf}}
		if err := two.config().VerifyConnection(state); errors.Is(err, errNotMember) != wrong || wrong != isNoMember(err) {
			t.Errorf("%s: %v", uri, err)
		}
	}
}

// A folder whose certificate has no name is refused with an instruction, which gives it a name. All certificates of the
// first versions had none.
func TestCertificateWithoutNameIsRenewed(t *testing.T) {
	dirs := folders(t, "node-1", "node-2")
	old := certificate(t, dirs[0])
	private := storetest.Value(keyText(old.PrivateKey.(*ecdsa.PrivateKey)))(t)
	if err := errors.Join(replace(filepath.Join(dirs[1], nodeCert), pemOf("CERTIFICATE", old.Certificate[0])),
		replace(filepath.Join(dirs[1], nodeKey), private)); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKeys(dirs[1]); err == nil || !strings.Contains(err.Error(), "castellan cluster renew") {
		t.Errorf("a certificate without a name: %v", err)
	}
	storetest.Must(t, RenewKeys(dirs[0], dirs[1], ""))
	r := load(t, dirs[1]).now.Load()
	left := time.Until(r.node.Leaf.NotAfter)
	if year := 365 * 24 * time.Hour; r.name != "node-2" || left > year || left < year-time.Hour {
		t.Errorf("%s, which lasts %v", r.name, left)
	}
	if err := RenewKeys(dirs[0], dirs[1], "node-1"); err == nil {
		t.Error("a node has got another's name")
	}
	if err := NodeKeys(dirs[0], filepath.Join(t.TempDir(), "a_b"), ""); err == nil {
		t.Error("a_b is the name of a node")
	}
	// A version without names accepts the new certificate: it verifies this host name.
	if err := r.node.Leaf.VerifyHostname(nodeName); err != nil {
		t.Error(err)
	}
}

// A revoked certificate is rejected at once, and its open connections are closed, until it is removed from the list.
func TestRevocation(t *testing.T) {
	dirs := folders(t, "node-1", "node-2", "node-3")
	c := newCast()
	a := member(t, c, load(t, dirs[0]))
	b := member(t, c, load(t, dirs[1]), a)
	d := member(t, c, load(t, dirs[2]), a)
	together(t, a, b, d)
	serial, name, _, err := Certificate(dirs[2])
	if err != nil || name != "node-3" {
		t.Fatal(name, err)
	}
	list := []byte("# out\n\n  " + strings.ToUpper(serial) + " # node-3\n")
	for _, dir := range dirs[:2] {
		storetest.Must(t, os.WriteFile(filepath.Join(dir, revokedList), list, 0o600))
	}
	until(t, "it is out", func() bool {
		return len(a.Members()) == 2 && len(b.Members()) == 2 && !d.Belongs() &&
			a.membership.linkTo(d.Address()).barred.Load()
	})
	if s := a.membership.linkTo(d.Address()).current.Load(); s != nil {
		t.Error("there is a connection to it")
	}
	for _, dir := range dirs[:2] {
		storetest.Must(t, os.Remove(filepath.Join(dir, revokedList)))
	}
	together(t, a, b, d)
	storetest.Must(t, os.WriteFile(filepath.Join(dirs[0], revokedList), []byte("node-3\n"), 0o600))
	if _, err := LoadKeys(dirs[0]); err == nil || !strings.Contains(err.Error(), "serial") {
		t.Errorf("a list that cannot be read: %v", err)
	}
}

// A node gets a new certificate, and a cluster a new authority, without a restart. In the end the old authority is
// rejected.
func TestRotation(t *testing.T) {
	dirs := folders(t, "node-1", "node-2")
	c := newCast()
	a := member(t, c, load(t, dirs[0]))
	b := member(t, c, load(t, dirs[1]), a)
	together(t, a, b)
	next := filepath.Join(t.TempDir(), "next")
	storetest.Must(t, InitKeys(next, "authority"))
	old := storetest.Value(os.ReadFile(filepath.Join(dirs[0], caCert)))(t)
	fresh := storetest.Value(os.ReadFile(filepath.Join(next, caCert)))(t)
	step := func(what string, do func(dir string) error) {
		t.Helper()
		for i, n := range []*Node{a, b} {
			before := n.membership.o.Keys.now.Load()
			storetest.Must(t, do(dirs[i]))
			until(t, what, func() bool {
				now := n.membership.o.Keys.now.Load()
				return now != before && now.node.Leaf != nil
			})
		}
	}
	step("both authorities", func(dir string) error {
		return replace(filepath.Join(dir, caCert), bytes.Join([][]byte{old, fresh}, nil))
	})
	step("certificates of the new one", func(dir string) error { return RenewKeys(next, dir, "") })
	lapses := a.Lapses() + b.Lapses()
	step("the new one only", func(dir string) error { return replace(filepath.Join(dir, caCert), fresh) })
	together(t, a, b)
	until(t, "every connection is of the new authority", func() bool {
		for _, n := range []*Node{a, b} {
			for _, o := range []*Node{a, b} {
				l := n.membership.linkTo(o.Address())
				if l == nil {
					continue
				}
				s := l.current.Load()
				if s == nil || n.membership.o.Keys.stillMember(s.Conn.(*tls.Conn).ConnectionState(), time.Now()) != nil {
					return false
				}
			}
		}
		return true
	})
	if got := a.Lapses() + b.Lapses(); got != lapses {
		t.Errorf("%d times a node did not know that it belongs", got-lapses)
	}
	if _, err := tell(t.Context(), a, "x", ""); err != nil {
		t.Error(err)
	}
	// Unusable keys change nothing.
	before := a.membership.o.Keys.now.Load()
	storetest.Must(t, os.WriteFile(filepath.Join(dirs[0], nodeCert), []byte("half"), 0o600))
	if changed, err := a.membership.o.Keys.reload(); changed || err == nil || a.membership.o.Keys.now.Load() != before {
		t.Errorf("half of a renewal: %t, %v", changed, err)
	}
}

// A node warns from thirty days before its certificate expires. A connection ends when the certificate of either side
// expires.
func TestCertificatesEnd(t *testing.T) {
	dirs := folders(t, "node-1")
	for left, warns := range map[time.Duration]bool{RenewWithin - time.Hour: true, RenewWithin + time.Hour: false} {
		storetest.Must(t, issue(dirs[0], dirs[0], "node-1", left, replace))
		var said bytes.Buffer
		n, err := New(Options{GossipAddr: "127.0.0.1:1", ActorAddr: "127.0.0.1:2", Keys: load(t, dirs[0]),
			Log: slog.New(slog.NewTextHandler(&said, nil))})
		storetest.Must(t, err)
		n.membership.warnOfEnd(time.Now())
		if strings.Contains(said.String(), "expires soon") != warns {
			t.Errorf("%v before the end: %s", left, said.String())
		}
		if got := time.Until(n.CertificateEnds()); got > left || got < left-time.Minute {
			t.Errorf("it ends in %v", got)
		}
	}
	k := load(t, dirs[0])
	state := tls.ConnectionState{PeerCertificates: []*x509.Certificate{k.now.Load().node.Leaf}}
	for at, want := range map[time.Duration]bool{-time.Minute: true, time.Minute: false} {
		if err := k.stillMember(state, k.ends().Add(at)); (err == nil) != want {
			t.Errorf("%v after the end: %v", at, err)
		}
	}
}
