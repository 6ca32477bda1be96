package cluster

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"time"
)

// Keys are a node's credentials: a certificate of the cluster's authority that names it as a member, and the gossip
// key. They are read again when their files change.
type Keys struct {
	dir string
	now atomic.Pointer[keyring]
}

// keyring is the content of the key files. It is immutable.
type keyring struct {
	sum     [sha256.Size]byte // of the files
	node    tls.Certificate
	name    string
	roots   *x509.CertPool
	gossip  []byte
	revoked map[string]bool // serial numbers in hex
}

// Files in a folder of keys. Only the creation of certificates needs the authority's key; nodes run without it. The
// revocation list is optional.
const (
	caCert      = "ca.crt"
	caKey       = "ca.key"
	nodeCert    = "node.crt"
	nodeKey     = "node.key"
	gossipKey   = "gossip.key"
	revokedList = "revoked"
)

// A member's certificate has its name and role in a URI, castellan://member/NAME. A certificate without such a URI
// belongs to no member, even if the authority signed it. Members are not identified by their addresses, which change.
const (
	nameScheme = "castellan"
	nameRole   = "member"
)

// nodeName is in every member's certificate too, because TLS verifies a host name.
const nodeName = "node.castellan.cluster"

var (
	// errNotMember means that the other end has proved not to be a member.
	errNotMember = errors.New("cluster: not a certificate of a member")
	namePattern  = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)
)

// LoadKeys reads a folder created by InitKeys or NodeKeys.
func LoadKeys(dir string) (*Keys, error) {
	k := &Keys{dir: dir}
	r, err := k.read()
	if err != nil {
		return nil, fmt.Errorf("cluster keys: %w", err)
	}
	k.now.Store(r)
	return k, nil
}

// reload reads the files again and reports whether they have changed. After an error, such as a partial renewal, the
// previous keys stay in force.
func (k *Keys) reload() (changed bool, err error) {
	before := k.now.Load()
	r, err := k.read()
	switch {
	case err != nil:
		return false, fmt.Errorf("cluster keys: %w", err)
	case r.sum == before.sum:
		return false, nil
	case r.name != before.name:
		return false, fmt.Errorf("cluster keys: %s names %s, and this node is %s until it is restarted",
			filepath.Join(k.dir, nodeCert), r.name, before.name)
	}
	k.now.Store(r)
	return true, nil
}

func (k *Keys) read() (*keyring, error) {
	text := map[string][]byte{}
	all := sha256.New()
	for _, name := range []string{caCert, nodeCert, nodeKey, gossipKey, revokedList} {
		content, err := os.ReadFile(filepath.Join(k.dir, name))
		if err != nil && !(name == revokedList && errors.Is(err, fs.ErrNotExist)) {
			return nil, err
		}
		text[name] = content
		fmt.Fprintf(all, "%d ", len(content))
		all.Write(content)
	}
	r := &keyring{roots: x509.NewCertPool(), revoked: map[string]bool{}}
	all.Sum(r.sum[:0])
	if before := k.now.Load(); before != nil && before.sum == r.sum {
		return before, nil
	}
	at := func(name string) string { return filepath.Join(k.dir, name) }
	if !r.roots.AppendCertsFromPEM(text[caCert]) {
		return nil, fmt.Errorf("%s contains no certificate", at(caCert))
	}
	var err error
	if r.node, err = tls.X509KeyPair(text[nodeCert], text[nodeKey]); err != nil {
		return nil, fmt.Errorf("%s: %w", at(nodeCert), err)
	}
	usage := x509.VerifyOptions{Roots: r.roots, DNSName: nodeName,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := r.node.Leaf.Verify(usage); err != nil {
		return nil, fmt.Errorf("%s: %w", at(nodeCert), err)
	}
	if r.name, err = memberName(r.node.Leaf); err != nil {
		return nil, fmt.Errorf(`%s: %w: renew it with "castellan cluster renew"`, at(nodeCert), err)
	}
	r.gossip, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(text[gossipKey])))
	if err != nil || len(r.gossip) != 32 {
		return nil, fmt.Errorf("%s is not 32 bytes in base64", at(gossipKey))
	}
	for line := range bytes.Lines(text[revokedList]) {
		entry, _, _ := strings.Cut(string(line), "#")
		if entry = strings.TrimSpace(entry); entry == "" {
			continue
		}
		serial, ok := new(big.Int).SetString(entry, 16)
		if !ok {
			return nil, fmt.Errorf("%s: %q is not a serial number in hex", at(revokedList), entry)
		}
		r.revoked[serial.Text(16)] = true
	}
	return r, nil
}

// memberName returns the name in a member's certificate.
func memberName(c *x509.Certificate) (string, error) {
	if len(c.URIs) != 1 || c.URIs[0].Scheme != nameScheme || c.URIs[0].Host != nameRole {
		return "", fmt.Errorf("%w: it names no member", errNotMember)
	}
	name := strings.TrimPrefix(c.URIs[0].Path, "/")
	if !namePattern.MatchString(name) || c.URIs[0].String() != nameScheme+"://"+nameRole+"/"+name {
		return "", fmt.Errorf("%w: it names no member", errNotMember)
	}
	return name, nil
}

// config returns the TLS configuration for both ends of a connection. Sessions are not resumed: every connection shows
// its certificate.
func (k *Keys) config() *tls.Config {
	r := k.now.Load()
	return &tls.Config{Certificates: []tls.Certificate{r.node}, RootCAs: r.roots, ClientCAs: r.roots, ServerName: nodeName,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13, SessionTicketsDisabled: true,
		VerifyConnection: func(s tls.ConnectionState) error { _, err := r.member(s); return err }}
}

// member returns the name of the other end of a connection whose chain has been verified.
func (r *keyring) member(s tls.ConnectionState) (string, error) {
	if len(s.PeerCertificates) == 0 {
		return "", errNotMember
	}
	leaf := s.PeerCertificates[0]
	if r.revoked[leaf.SerialNumber.Text(16)] {
		return "", fmt.Errorf("%w: %s is revoked", errNotMember, leaf.SerialNumber.Text(16))
	}
	return memberName(leaf)
}

// stillMember checks a connection again with the current keys: its certificate may have expired or been revoked, or its
// authority removed.
func (k *Keys) stillMember(s tls.ConnectionState, now time.Time) error {
	r := k.now.Load()
	if _, err := r.member(s); err != nil {
		return err
	}
	_, err := s.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: r.roots, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}})
	return err
}

// ends returns when the node's certificate expires.
func (k *Keys) ends() time.Time { return k.now.Load().node.Leaf.NotAfter }

// Certificate describes the node's certificate in a folder: its serial number in the format of the revocation list, its
// name, and its expiry.
func Certificate(dir string) (serial, name string, ends time.Time, err error) {
	file := filepath.Join(dir, nodeCert)
	text, err := os.ReadFile(file)
	if err != nil {
		return "", "", ends, err
	}
	c, err := firstCertificate(text)
	if err != nil {
		return "", "", ends, fmt.Errorf("%s: %w", file, err)
	}
	if name, err = memberName(c); err != nil {
		name = "no name"
	}
	return c.SerialNumber.Text(16), name, c.NotAfter, nil
}
