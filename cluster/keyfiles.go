package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Lifetimes of certificates. A member's certificate is renewed while the node runs; a new authority must first reach
// every node.
const (
	caLife   = 10 * 365 * 24 * time.Hour
	nodeLife = 365 * 24 * time.Hour
)

// InitKeys creates a folder with a new authority, a node's certificate and a gossip key. If name is empty, the name of
// the folder is used. Existing keys are never overwritten: they cause an error.
func InitKeys(dir, name string) error {
	for _, file := range []string{caCert, caKey, nodeCert, nodeKey, gossipKey} {
		if _, err := os.Lstat(filepath.Join(dir, file)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s already contains keys: %s", dir, file)
		}
	}
	name, err := nameOr(name, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "Castellan cluster"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(caLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	var gossip [32]byte
	rand.Read(gossip[:])
	secret := []byte(base64.StdEncoding.EncodeToString(gossip[:]) + "\n")
	private, err := keyText(key)
	return errors.Join(err, writeNew(filepath.Join(dir, caKey), private),
		writeNew(filepath.Join(dir, caCert), pemOf("CERTIFICATE", der)),
		writeNew(filepath.Join(dir, gossipKey), secret), issue(dir, dir, name, nodeLife, writeNew))
}

// NodeKeys creates the folder of another node of the cluster whose authority is in from: the node's keys without the
// authority's key. If name is empty, the name of the folder is used.
func NodeKeys(from, dir, name string) error {
	name, err := nameOr(name, dir)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, file := range []string{caCert, gossipKey} {
		text, err := os.ReadFile(filepath.Join(from, file))
		if err != nil {
			return err
		}
		if err := writeNew(filepath.Join(dir, file), text); err != nil {
			return err
		}
	}
	return issue(from, dir, name, nodeLife, writeNew)
}

// RenewKeys replaces the certificate and the key of the node whose folder is dir. A node keeps its name; a node without
// one gets name, or the folder's name.
func RenewKeys(from, dir, name string) error {
	text, err := os.ReadFile(filepath.Join(dir, nodeCert))
	if err != nil {
		return err
	}
	c, err := firstCertificate(text)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, nodeCert), err)
	}
	had, err := memberName(c)
	switch {
	case err != nil:
		if had, err = nameOr(name, dir); err != nil {
			return err
		}
	case name != "" && name != had:
		return fmt.Errorf("%s is the certificate of %s: the name cannot change", filepath.Join(dir, nodeCert), had)
	}
	return issue(from, dir, had, nodeLife, replace)
}

func nameOr(name, dir string) (string, error) {
	if name == "" {
		whole, err := filepath.Abs(dir)
		if err != nil {
			return "", err
		}
		name = strings.ToLower(filepath.Base(whole))
	}
	if !namePattern.MatchString(name) {
		return "", fmt.Errorf("%q is not a node name: want up to 63 of a-z, 0-9, dot, dash, not at an end",
			name)
	}
	return name, nil
}

// issue creates a certificate by the authority in from.
func issue(from, dir, name string, life time.Duration, write func(file string, text []byte) error) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(from, caCert), filepath.Join(from, caKey))
	if err != nil {
		return fmt.Errorf("the cluster's authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	ends := time.Now().Add(life)
	if pair.Leaf.NotAfter.Before(ends) {
		ends = pair.Leaf.NotAfter
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: name},
		DNSNames: []string{nodeName}, URIs: []*url.URL{{Scheme: nameScheme, Host: nameRole, Path: "/" + name}},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: ends, KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		return err
	}
	private, err := keyText(key)
	return errors.Join(err, write(filepath.Join(dir, nodeKey), private),
		write(filepath.Join(dir, nodeCert), pemOf("CERTIFICATE", der)))
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}

func firstCertificate(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, errors.New("it contains no certificate")
	}
	return x509.ParseCertificate(block.Bytes)
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func keyText(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pemOf("PRIVATE KEY", der), err
}

// writeNew never overwrites a file: replacing a key by accident would disconnect nodes.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// replace replaces a file atomically.
func replace(file string, text []byte) error {
	next := file + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := writeNew(next, text); err != nil {
		return err
	}
	return os.Rename(next, file)
}
