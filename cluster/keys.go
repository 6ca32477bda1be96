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
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Keys are what a node needs to be believed: a certificate of the cluster's
// authority, and the key of the gossip.
type Keys struct {
	node   tls.Certificate
	roots  *x509.CertPool
	gossip []byte
}

// Files of a folder of keys. The authority's key is needed to make
// certificates only; nodes run without it.
const (
	caCert    = "ca.crt"
	caKey     = "ca.key"
	nodeCert  = "node.crt"
	nodeKey   = "node.key"
	gossipKey = "gossip.key"
)

// nodeName is in every node's certificate. Members are known by the authority
// that signed them, not by their addresses, which come and go.
const nodeName = "node.castellan.cluster"

// certLife is how long certificates last.
const certLife = 10 * 365 * 24 * time.Hour

// LoadKeys reads a folder made by InitKeys or NodeKeys.
func LoadKeys(dir string) (*Keys, error) {
	k := &Keys{roots: x509.NewCertPool()}
	ca, err := os.ReadFile(filepath.Join(dir, caCert))
	if err != nil {
		return nil, fmt.Errorf("cluster keys: %w", err)
	}
	if !k.roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("cluster keys: %s holds no certificate", filepath.Join(dir, caCert))
	}
	if k.node, err = tls.LoadX509KeyPair(filepath.Join(dir, nodeCert), filepath.Join(dir, nodeKey)); err != nil {
		return nil, fmt.Errorf("cluster keys: %w", err)
	}
	usage := x509.VerifyOptions{Roots: k.roots, DNSName: nodeName,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if _, err := k.node.Leaf.Verify(usage); err != nil {
		return nil, fmt.Errorf("cluster keys: %s: %w", filepath.Join(dir, nodeCert), err)
	}
	text, err := os.ReadFile(filepath.Join(dir, gossipKey))
	if err != nil {
		return nil, fmt.Errorf("cluster keys: %w", err)
	}
	k.gossip, err = base64.StdEncoding.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(k.gossip) != 32 {
		return nil, fmt.Errorf("cluster keys: %s is not 32 bytes in base64", filepath.Join(dir, gossipKey))
	}
	return k, nil
}

func (k *Keys) config() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{k.node}, RootCAs: k.roots, ClientCAs: k.roots, ServerName: nodeName,
		ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
}

// InitKeys makes a folder with a new authority, a node's certificate and a
// gossip key. Keys that are there already stay: it is an error.
func InitKeys(dir string) error {
	for _, name := range []string{caCert, caKey, nodeCert, nodeKey, gossipKey} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("%s holds keys already: %s", dir, name)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "Castellan cluster"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	var gossip [32]byte
	rand.Read(gossip[:])
	secret := []byte(base64.StdEncoding.EncodeToString(gossip[:]) + "\n")
	return errors.Join(writeKey(filepath.Join(dir, caKey), key),
		writeNew(filepath.Join(dir, caCert), pemOf("CERTIFICATE", der)),
		writeNew(filepath.Join(dir, gossipKey), secret), nodeKeys(dir, dir))
}

// NodeKeys makes the folder of another node of the cluster whose authority is
// in from: what the node needs, without the authority's key.
func NodeKeys(from, dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range []string{caCert, gossipKey} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return err
		}
		if err := writeNew(filepath.Join(dir, name), text); err != nil {
			return err
		}
	}
	return nodeKeys(from, dir)
}

func nodeKeys(from, dir string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(from, caCert), filepath.Join(from, caKey))
	if err != nil {
		return fmt.Errorf("the cluster's authority: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{SerialNumber: serial(), Subject: pkix.Name{CommonName: "Castellan node"},
		DNSNames:  []string{nodeName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certLife), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		return err
	}
	return errors.Join(writeKey(filepath.Join(dir, nodeKey), key),
		writeNew(filepath.Join(dir, nodeCert), pemOf("CERTIFICATE", der)))
}

func serial() *big.Int {
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand does not fail
	}
	return n
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func writeKey(file string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return writeNew(file, pemOf("PRIVATE KEY", der))
}

// writeNew never overwrites: a key that is replaced by accident cuts nodes off.
func writeNew(file string, text []byte) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}
