package push

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"strings"
)

var p256 = ecdh.P256()

const (
	saltBytes  = 16
	authBytes  = 16
	recordSize = 4096 // a message is one record, as RFC 8291 requires
	// paddedBytes is the length of every text before encryption: the length of a message does not reveal its content to
	// the carrier.
	paddedBytes = 512
)

// receiver holds a device's keys for the encryption.
type receiver struct {
	public *ecdh.PublicKey
	auth   []byte
}

func (k deviceKeys) receiver() (receiver, error) {
	point, err := decode(k.P256dh)
	auth, errAuth := decode(k.Auth)
	if err != nil || errAuth != nil || len(auth) != authBytes {
		return receiver{}, errors.New("malformed keys of the target")
	}
	public, err := p256.NewPublicKey(point)
	if err != nil {
		return receiver{}, errors.New("malformed keys of the target")
	}
	return receiver{public, auth}, nil
}

// decode reads base64url with or without padding.
func decode(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// encrypt seals text for a device (RFC 8291) under a key and a salt that are used only for this message.
func (r receiver) encrypt(text []byte) ([]byte, error) {
	once, err := p256.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	salt := make([]byte, saltBytes)
	rand.Read(salt) // never fails
	return r.seal(text, paddedBytes, once, salt)
}

// seal writes a text as one aes128gcm record (RFC 8188), padded to a length.
func (r receiver) seal(text []byte, padded int, once *ecdh.PrivateKey, salt []byte) ([]byte, error) {
	shared, err := once.ECDH(r.public)
	if err != nil {
		return nil, err
	}
	own := once.PublicKey().Bytes()
	secret, err := hkdf.Key(sha256.New, shared, r.auth, "WebPush: info\x00"+string(r.public.Bytes())+string(own), 32)
	if err != nil {
		return nil, err
	}
	key, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: aes128gcm\x00", 16)
	if err != nil {
		return nil, err
	}
	nonce, err := hkdf.Key(sha256.New, secret, salt, "Content-Encoding: nonce\x00", 12)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	record := append(bytes.Clone(text), 2) // the last record
	record = append(record, make([]byte, max(0, padded-len(record)))...)
	if len(record)+aead.Overhead() > recordSize {
		return nil, errors.New("message too long")
	}
	out := binary.BigEndian.AppendUint32(bytes.Clone(salt), recordSize)
	out = append(append(out, byte(len(own))), own...)
	return aead.Seal(out, nonce, record, nil), nil
}
