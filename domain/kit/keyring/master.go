package keyring

import (
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// masterLabel begins the line of a master key's file, so that a reader recognises the file.
const masterLabel = "castellan-master-key"

// Master is the key that wraps all others. It prints as its id. The zero value is not a key.
type Master struct {
	id   string
	aead cipher.AEAD
}

// ID is derived from the key, so a file cannot claim the id of another key.
func (m Master) ID() string { return m.id }

// String and GoString keep the key out of logs.
func (m Master) String() string   { return "master key " + m.id }
func (m Master) GoString() string { return m.String() }

func newMaster(secret []byte) (Master, error) {
	sum := sha256.Sum256(append([]byte("castellan master key id\x00"), secret...))
	aead, err := newAEAD(secret)
	return Master{strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10])), aead}, err
}

// ReadMaster reads a master key from its file: one line
//
//	castellan-master-key <id> <32 bytes in base64>
//
// or the base64 alone, as written by `openssl rand -base64 32`. It rejects a file that users other than its owner may
// read, except the group of a file that root owns. For a missing file the error is fs.ErrNotExist.
func ReadMaster(file string) (Master, error) {
	f, err := os.Open(file)
	if err != nil {
		return Master{}, fmt.Errorf("read master key: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Master{}, fmt.Errorf("read master key: %w", err)
	}
	if !info.Mode().IsRegular() {
		return Master{}, fmt.Errorf("read master key: %s is not a file", file)
	}
	if !private(info.Mode().Perm(), owner(info), os.Geteuid()) {
		return Master{}, fmt.Errorf("read master key: %s has mode %#o: users other than its owner may use it; "+
			"set it to 0600 (chmod 600), or to 0640 if root owns it and the service is another user",
			file, info.Mode().Perm())
	}
	text, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return Master{}, fmt.Errorf("read master key: %w", err)
	}
	m, err := parseMaster(string(text))
	if err != nil {
		return Master{}, fmt.Errorf("read master key: %s: %w", file, err)
	}
	return m, nil
}

// private reports whether a file of an owner is secret enough for a process of the user self. As in PostgreSQL, a file
// of the user itself has no bits for others. A file of root may be read by a group: a volume of Kubernetes with
// fsGroup is mounted as root:GROUP 0440.
func private(mode fs.FileMode, owner, self int) bool {
	if owner == 0 && self != 0 {
		return mode&0o037 == 0
	}
	return mode&0o077 == 0
}

// owner returns the user of a file; -1 where the system has none.
func owner(info fs.FileInfo) int {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(s.Uid)
	}
	return -1
}

func parseMaster(text string) (Master, error) {
	id, encoded := "", ""
	switch words := strings.Fields(text); {
	case len(words) == 1:
		encoded = words[0]
	case len(words) == 3 && words[0] == masterLabel:
		id, encoded = words[1], words[2]
	default:
		return Master{}, fmt.Errorf("not a master key: want the line %q", masterLabel+" <id> <base64>")
	}
	secret, err := base64.StdEncoding.Strict().DecodeString(encoded)
	if err != nil || len(secret) != secretLen {
		return Master{}, fmt.Errorf("not a master key: want %d bytes in base64", secretLen)
	}
	defer clear(secret)
	m, err := newMaster(secret)
	if err == nil && id != "" && id != m.id {
		return Master{}, fmt.Errorf("damaged: it claims to be master key %s, but contains another key", id)
	}
	return m, err
}

// CreateMaster makes a master key and its file with mode 0600. The file is created completely or not at all, and is
// durable when CreateMaster returns. It never replaces an existing file: then the error is fs.ErrExist.
func CreateMaster(file string) (Master, error) {
	secret := make([]byte, secretLen)
	rand.Read(secret)
	defer clear(secret)
	m, err := newMaster(secret)
	if err != nil {
		return Master{}, err
	}
	line := fmt.Sprintf("%s %s %s\n", masterLabel, m.id, base64.StdEncoding.EncodeToString(secret))
	if err := writeNew(file, line); err != nil {
		return Master{}, fmt.Errorf("create master key: %w", err)
	}
	return m, nil
}

// writeNew writes a temporary file and links it to its name. With O_EXCL on the file itself, a concurrent process could
// read half a line, and a crash could leave an incomplete file.
func writeNew(file, text string) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+filepath.Base(file)+".*") // 0600, O_EXCL
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), file); err != nil {
		return err
	}
	return syncDir(dir)
}

// syncDir makes the directory entries durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// nextSuffix is the suffix of the file in which a rotation prepares the next master key.
const nextSuffix = ".new"

// promote replaces the master key in file by the prepared one. The old key stays beside it in a file named after its
// id: backups of the database from before the rotation need it. Several processes may promote at once.
func promote(file string, next Master) error {
	old, err := ReadMaster(file)
	switch {
	case err == nil && old.id == next.id: // done by another process; a copy would look like a prepared rotation
		if left, err := ReadMaster(file + nextSuffix); err == nil && left.id == next.id {
			return os.Remove(file + nextSuffix)
		}
		return nil
	case err == nil:
		if err := os.Link(file, file+"."+old.id); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case !errors.Is(err, fs.ErrNotExist):
		return err // an unreadable file is not overwritten
	}
	if err := os.Rename(file+nextSuffix, file); err != nil {
		if now, errNow := ReadMaster(file); errNow == nil && now.id == next.id {
			return nil
		}
		return err
	}
	return syncDir(filepath.Dir(file))
}

// wrap returns r with its secret sealed. The sealing binds the id and the purpose: the secret of one row does not open
// in another.
func (m Master) wrap(r Record, secret []byte) Record {
	// #nosec G407: the cipher (NewGCMWithRandomNonce) generates the nonce itself.
	r.Wrapped = m.aead.Seal(nil, nil, secret, wrapData(r))
	r.MasterID = m.id
	return r
}

func (m Master) unwrap(r Record) ([]byte, error) {
	if r.MasterID != m.id {
		return nil, fmt.Errorf("key %s (%s) is wrapped by master key %s, not by %s", r.ID, r.Purpose, r.MasterID, m.id)
	}
	secret, err := m.aead.Open(nil, nil, r.Wrapped, wrapData(r))
	if err != nil {
		return nil, fmt.Errorf("key %s (%s) does not open with master key %s: its row was changed", r.ID, r.Purpose, m.id)
	}
	return secret, nil
}

// AuditKey returns the audit key among keys that this master key wraps.
func (m Master) AuditKey(keys []Record) ([]byte, error) {
	var oldest *Record
	for i, r := range keys {
		if r.Purpose == Auditing && (oldest == nil || r.Seq < oldest.Seq) {
			oldest = &keys[i]
		}
	}
	if oldest == nil {
		return nil, errors.New("there is no audit key")
	}
	return m.unwrap(*oldest)
}

func wrapData(r Record) []byte {
	return []byte("castellan key\x00" + r.ID + "\x00" + string(r.Purpose))
}
