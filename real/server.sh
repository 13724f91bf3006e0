# Starting an etcd and kube-apiservers; shared by the scripts that do. Every function is about one directory.
# shellcheck shell=bash

# Sets `apiserver` and `etcd`, or says what is missing.
find_servers() {
    local tool
    for tool in openssl curl setsid; do
        command -v "$tool" >/dev/null 2>&1 || die "$tool is not installed"
    done
    apiserver=$(apiserver_path)
    etcd=$(cached_program etcd || true)
    [[ -x $apiserver && -n $etcd ]]
}

# One CA for the server's certificate and the clients'; the tokens are for clients that do not speak certificates.
make_credentials() {
    local dir=$1 days=3650
    [[ -e $dir/admin.token ]] && return
    {
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days $days \
            -subj "/CN=lockgate real CA" -keyout "$dir/ca.key" -out "$dir/ca.crt" \
            -addext "basicConstraints=critical,CA:TRUE" -addext "keyUsage=critical,keyCertSign,cRLSign"
        signed "$dir" server "/CN=kube-apiserver" "extendedKeyUsage=serverAuth
subjectAltName=IP:127.0.0.1,DNS:localhost"
        signed "$dir" admin "/O=system:masters/CN=admin" "extendedKeyUsage=clientAuth"
        openssl genrsa -out "$dir/sa.key" 2048
        openssl rsa -in "$dir/sa.key" -pubout -out "$dir/sa.pub"
    } >"$dir/log/openssl.log" 2>&1 || die "certificates could not be made; see $dir/log/openssl.log"
    openssl rand -hex 16 >"$dir/plain.token"
    openssl rand -hex 16 >"$dir/admin.token"
    printf '%s,admin,admin,"system:masters"\n%s,plain,plain,"team"\n' \
        "$(<"$dir/admin.token")" "$(<"$dir/plain.token")" >"$dir/tokens.csv"
}

signed() {
    local dir=$1
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "$3" -keyout "$dir/$2.key" -out "$dir/$2.csr"
    openssl x509 -req -in "$dir/$2.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -CAcreateserial -days 3650 -out "$dir/$2.crt" \
        -extfile <(printf 'basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n%s\n' "$4")
}

# Whether nobody listens on a port now.
is_free() { ! (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A free port below the range the kernel hands to outgoing connections.
free_port() {
    local port
    while :; do
        port=$((20000 + RANDOM % 12000))
        is_free "$port" && break
    done
    printf '%s\n' "$port"
}

running() { kill -0 "$1" 2>/dev/null; }

# Waits until a URL answers 200. Gives up when the process has gone (another may have taken its port: the caller retries) or
# after two minutes.
wait_ready() {
    local pid=$1 url=$2 deadline=$((SECONDS + 120))
    shift 2
    until curl -fsS -m 2 -o /dev/null "$@" "$url" 2>/dev/null; do
        running "$pid" || return 1
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

launch() {
    local log=$1
    shift
    setsid "$@" </dev/null >>"$log" 2>&1 9>&- &
    launched=$!
}

# Starts an etcd with its state in a directory; sets `etcd_pid` and `etcd_url`.
start_etcd() {
    local dir=$1 client peer
    for _ in 1 2 3 4 5; do
        client=$(free_port) peer=$(free_port)
        etcd_url=http://127.0.0.1:$client
        launch "$dir/log/etcd.log" "$etcd" --name real --data-dir "$dir/etcd" \
            --listen-client-urls "$etcd_url" --advertise-client-urls "$etcd_url" \
            --listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
            --initial-cluster "real=http://127.0.0.1:$peer"
        etcd_pid=$launched
        wait_ready "$etcd_pid" "$etcd_url/health" && return
        kill -9 "$etcd_pid" 2>/dev/null || true
    done
    give_up "etcd did not start; see $dir/log/etcd.log"
}

# Launches a kube-apiserver with its files in a directory, its objects under a prefix of etcd, on a port; sets `apiserver_pid`.
# LOCKGATE_REAL_AUDIT=1 writes every request that changes something to log/audit.log; LOCKGATE_REAL_AUDIT=all those that read, too,
# but for the questions whether the server is well and which one it is.
launch_apiserver() {
    local dir=$1 prefix=$2 port=$3 audit=() silent='{level: None, verbs: [get, list, watch]}'
    if [[ -n ${LOCKGATE_REAL_AUDIT:-} ]]; then
        [[ $LOCKGATE_REAL_AUDIT != all ]] || silent='{level: None, nonResourceURLs: ["/healthz*", "/livez*", "/readyz*", /version]}'
        printf '%s\n' 'apiVersion: audit.k8s.io/v1' 'kind: Policy' 'omitStages: [RequestReceived]' 'rules:' \
            "- $silent" '- {level: Metadata}' >"$dir/audit.yaml"
        audit=(--audit-policy-file="$dir/audit.yaml" --audit-log-path="$dir/log/audit.log" --audit-log-mode=blocking)
    fi
    # ServiceAccount admission is off: without the controller that makes each namespace's default account it only refuses pods.
    # The advertised address is a documentation address, so that nothing depends on the machine's network.
    launch "$dir/log/kube-apiserver.log" "$apiserver" \
        --etcd-servers="$etcd_url" --etcd-prefix="$prefix" \
        --bind-address=127.0.0.1 --secure-port="$port" --advertise-address=192.0.2.1 \
        --cert-dir="$dir" --tls-cert-file="$dir/server.crt" --tls-private-key-file="$dir/server.key" --client-ca-file="$dir/ca.crt" \
        --token-auth-file="$dir/tokens.csv" --authorization-mode=RBAC \
        --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$dir/sa.pub" \
        --service-account-signing-key-file="$dir/sa.key" --service-cluster-ip-range=10.0.0.0/24 \
        --disable-admission-plugins=ServiceAccount "${audit[@]}"
    apiserver_pid=$launched
}

apiserver_ready() {
    local dir=$1 pid=$2 port=$3
    wait_ready "$pid" "https://127.0.0.1:$port/readyz" --cacert "$dir/ca.crt" --cert "$dir/admin.crt" --key "$dir/admin.key"
}

# Writes DIR/kubeconfig with one context, and DIR/url.
write_kubeconfig() {
    local dir=$1 name=$2 url=$3
    (
        umask 077
        cat >"$dir/kubeconfig.new" <<YAML
apiVersion: v1
kind: Config
current-context: $name
clusters:
- name: $name
  cluster:
    server: $url
    certificate-authority-data: $(base64 -w0 <"$dir/ca.crt")
users:
- name: admin
  user:
    client-certificate-data: $(base64 -w0 <"$dir/admin.crt")
    client-key-data: $(base64 -w0 <"$dir/admin.key")
contexts:
- name: $name
  context: {cluster: $name, user: admin}
YAML
    )
    mv "$dir/kubeconfig.new" "$dir/kubeconfig"
    printf '%s\n' "$url" >"$dir/url"
}
