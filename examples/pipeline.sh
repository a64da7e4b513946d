#!/bin/sh
# Applies a ConfigMap or Secret in a pipeline, and waits until configstamp has rolled it out. It ends with the exit code of wait
# (docs/kubectl.md#waiting-in-a-pipeline).
#   sh pipeline.sh config.yaml configmap/web -n shop --timeout=15m
set -eu
file=$1 source=$2
shift 2

kubectl apply -f "$file"
code=0
kubectl configstamp wait "$source" "$@" || code=$?
case $code in
0) echo "$source is rolled out" ;;
2) echo "$source is halted: one workload has failed, and the others keep what they have. Revert it in Git." ;;
3) echo "$source is held, such as by a window: it rolls later" ;;
4) echo "$source is not rolled out yet" ;;
*) echo "it is not known whether $source is rolled out" ;;
esac
exit "$code"
