import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.results.BenchmarkResult;
import org.openjdk.jmh.results.IterationResult;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.BenchmarkList;
import org.openjdk.jmh.runner.BenchmarkListEntry;
import org.openjdk.jmh.runner.CompilerHints;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.format.OutputFormat;
import org.openjdk.jmh.runner.format.OutputFormatFactory;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Optional;

/**
 * Runs JMH benchmarks in this JVM: lists them, measures one, or serves requests.
 *
 * <pre>
 * JmhSuite VERSION options DIRECTORY   write the JVM options of JMH's forks to DIRECTORY/options, one a line
 * JmhSuite VERSION list FILE           write the benchmarks to FILE, as JSON lines
 * JmhSuite VERSION run FILE REQUEST    measure a benchmark, and write its values to FILE, as JSON lines
 * JmhSuite VERSION serve               answer requests from PERFTRAIL_REQUESTS through PERFTRAIL_RESPONSES
 * </pre>
 *
 * A REQUEST is the name of a benchmark, its mode (avgt or ss), the seconds of its measurement, and its parameters as
 * name=value: words with a blank between them, each of them URL-encoded. The answer has a line for each iteration, and
 * is empty if there is no such benchmark.
 *
 * <p>It compiles with Java 8 and with every JMH since 1.0, because old revisions need both.
 */
public final class JmhSuite {
    /** Measurement iterations; their median counts. */
    private static final int ITERATIONS = 5;

    /**
     * Time of the warm-up relative to that of the measurement. A process measures each benchmark once, so each needs a
     * warm-up of its own, in which the JVM compiles it.
     */
    private static final int WARM_UP = 5;

    private final OutputFormat format;
    private final Map<String, List<BenchmarkListEntry>> benchmarks = new LinkedHashMap<>();

    private JmhSuite() {
        format = OutputFormatFactory.createFormatInstance(System.err, VerboseMode.NORMAL);
        for (BenchmarkListEntry each :
                BenchmarkList.defaultList().getAll(format, Collections.<String>emptyList())) {
            benchmarks.computeIfAbsent(each.getUsername(), name -> new ArrayList<>()).add(each);
        }
    }

    public static void main(String[] words) throws Exception {
        System.setOut(System.err); // JMH and benchmarks print to standard error
        System.setProperty("jmh.ignoreLock", "true"); // base and head have processes at the same time
        if (words[1].equals("options")) {
            writeOptions(Paths.get(words[2]));
        } else if (words[1].equals("list")) {
            write(words[2], new JmhSuite().list());
        } else if (words[1].equals("run")) {
            try {
                write(words[2], new JmhSuite().measure(words[3]));
            } catch (Exception error) {
                error.printStackTrace();
                System.err.println(reason(error));
                System.err.flush();
                Runtime.getRuntime().halt(1);
            }
        } else {
            new JmhSuite().serve();
        }
        System.err.flush();
        Runtime.getRuntime().halt(0); // threads that a benchmark left must not keep the process
    }

    /**
     * Write the options that JMH passes to its forks: without them, the JVM inlines methods that JMH forbids to inline,
     * and removes what black holes consume.
     */
    private static void writeOptions(Path directory) throws IOException {
        List<String> options = new ArrayList<>();
        CompilerHints.addCompilerHints(options);
        List<String> lines = new ArrayList<>();
        String prefix = "-XX:CompileCommandFile=";
        for (String each : options) {
            if (each.startsWith(prefix)) { // JMH removes its file when this process ends
                Path file = directory.resolve("hints" + lines.size());
                Files.copy(
                        Paths.get(each.substring(prefix.length())), file, StandardCopyOption.REPLACE_EXISTING);
                each = prefix + file;
            }
            lines.add(each);
        }
        Files.write(directory.resolve("options"), lines, StandardCharsets.UTF_8);
    }

    /** Return a JSON line for each benchmark at each combination of its parameters. */
    private String list() {
        StringBuilder lines = new StringBuilder();
        for (Map.Entry<String, List<BenchmarkListEntry>> each : benchmarks.entrySet()) {
            BenchmarkListEntry first = each.getValue().get(0);
            boolean once = true;
            for (BenchmarkListEntry entry : each.getValue()) {
                once &= entry.getMode() == Mode.SingleShotTime;
            }
            for (Map<String, String> point : points(parameters(first))) {
                lines.append("{\"name\":").append(json(each.getKey()));
                lines.append(",\"mode\":").append(once ? "\"ss\"" : "\"avgt\"").append(",\"point\":{");
                String separator = "";
                for (Map.Entry<String, String> pair : point.entrySet()) {
                    lines.append(separator).append(json(pair.getKey())).append(':').append(json(pair.getValue()));
                    separator = ",";
                }
                lines.append("},\"jvm\":[");
                separator = "";
                for (String word : jvmWords(first)) {
                    lines.append(separator).append(json(word));
                    separator = ",";
                }
                lines.append("]}\n");
            }
        }
        return lines.toString();
    }

    private static Map<String, String[]> parameters(BenchmarkListEntry entry) {
        Map<String, String[]> none = Collections.emptyMap();
        return new TreeMap<>(entry.getParams().orElse(none));
    }

    private static List<Map<String, String>> points(Map<String, String[]> parameters) {
        List<Map<String, String>> points = new ArrayList<>();
        points.add(new LinkedHashMap<String, String>());
        for (Map.Entry<String, String[]> each : parameters.entrySet()) {
            List<Map<String, String>> longer = new ArrayList<>();
            for (Map<String, String> point : points) {
                for (String value : each.getValue()) {
                    Map<String, String> next = new LinkedHashMap<>(point);
                    next.put(each.getKey(), value);
                    longer.add(next);
                }
            }
            points = longer;
        }
        return points;
    }

    /** Return the JVM options that a benchmark's annotation Fork adds. */
    private static List<String> jvmWords(BenchmarkListEntry entry) {
        List<String> words = new ArrayList<>();
        List<Optional<Collection<String>>> all =
                Arrays.asList(entry.getJvmArgsPrepend(), entry.getJvmArgs(), entry.getJvmArgsAppend());
        for (Optional<Collection<String>> each : all) {
            for (String text : each.orElse(Collections.<String>emptyList())) {
                for (String word : text.trim().split("\\s+")) { // as JMH splits them
                    if (!word.isEmpty()) {
                        words.add(word);
                    }
                }
            }
        }
        return words;
    }

    /** Return a JSON line with the seconds of each iteration; nothing if there is no such benchmark. */
    private String measure(String request) throws Exception {
        String[] words = request.split(" ");
        String name = decoded(words[0]);
        boolean once = words[1].equals("ss");
        List<BenchmarkListEntry> entries = benchmarks.get(name);
        if (entries == null) {
            return "";
        }
        Map<String, String[]> parameters = parameters(entries.get(0));
        ChainedOptionsBuilder options = new OptionsBuilder()
                .include("^" + Pattern.quote(name) + "$")
                .forks(0)
                .mode(once ? Mode.SingleShotTime : Mode.AverageTime)
                .timeUnit(TimeUnit.SECONDS)
                .shouldFailOnError(true);
        if (words.length - 3 != parameters.size()) {
            return "";
        }
        for (String word : Arrays.asList(words).subList(3, words.length)) {
            int at = word.indexOf('=');
            String parameter = decoded(word.substring(0, at));
            String value = decoded(word.substring(at + 1));
            String[] values = parameters.get(parameter);
            if (values == null || !Arrays.asList(values).contains(value)) {
                return "";
            }
            options.param(parameter, value);
        }
        if (!once) {
            // An iteration has a fixed time, not a fixed number of invocations: JMH divides the time by the number of
            // invocations itself, so equal times in both builds give comparable values, and no build needs a
            // calibration. A benchmark that starts once (SingleShotTime) has the iterations that its author chose.
            long nanoseconds = Math.max(1_000_000L, (long) (Double.parseDouble(words[2]) * 1e9));
            options.warmupIterations(1)
                    .warmupTime(TimeValue.nanoseconds(WARM_UP * nanoseconds))
                    .measurementIterations(ITERATIONS)
                    .measurementTime(TimeValue.nanoseconds(Math.max(1, nanoseconds / ITERATIONS)));
        }
        System.gc(); // the garbage of another benchmark must not cost this one time
        StringBuilder lines = new StringBuilder();
        for (RunResult run : new Runner(options.build(), format).run()) {
            for (BenchmarkResult result : run.getBenchmarkResults()) {
                for (IterationResult iteration : result.getIterationResults()) {
                    lines.append("{\"benchmark\":").append(json(name)).append(",\"metric\":\"time\",\"value\":");
                    lines.append(iteration.getPrimaryResult().getScore()).append(",\"unit\":\"s\"}\n");
                }
            }
        }
        return lines.toString();
    }

    /** Answer each request with one JSON line: its output, the CPU time that it took, or its failure. */
    private void serve() throws IOException {
        try (OutputStream responses = new FileOutputStream(System.getenv("PERFTRAIL_RESPONSES"));
                BufferedReader requests = Files.newBufferedReader(
                        Paths.get(System.getenv("PERFTRAIL_REQUESTS")), StandardCharsets.UTF_8)) {
            answer(responses, "{\"ready\":true}");
            for (String line = requests.readLine(); line != null; line = requests.readLine()) {
                double before = cpuSeconds();
                String output = "";
                String failure = "";
                try {
                    output = measure(line);
                } catch (Exception error) {
                    error.printStackTrace();
                    failure = reason(error);
                }
                String cpu = String.valueOf(cpuSeconds() - before);
                answer(responses, "{\"output\":" + json(output) + ",\"failure\":" + json(failure) + ",\"cpu\":" + cpu + "}");
            }
        }
    }

    private static void answer(OutputStream responses, String line) throws IOException {
        responses.write((line + "\n").getBytes(StandardCharsets.UTF_8));
        responses.flush();
    }

    private static double cpuSeconds() {
        Object system = ManagementFactory.getOperatingSystemMXBean();
        return system instanceof OperatingSystemMXBean
                ? Math.max(0L, ((OperatingSystemMXBean) system).getProcessCpuTime()) * 1e-9
                : 0.0;
    }

    /** Return the message of the innermost exception: JMH wraps those of a benchmark, one for each thread. */
    private static String reason(Throwable error) {
        for (int depth = 0; depth < 20; depth++) {
            Throwable[] suppressed = error.getSuppressed();
            Throwable inner = error.getCause() != null ? error.getCause() : suppressed.length > 0 ? suppressed[0] : null;
            if (inner == null) {
                break;
            }
            error = inner;
        }
        return error.toString();
    }

    private static void write(String file, String text) throws IOException {
        Files.write(Paths.get(file), text.getBytes(StandardCharsets.UTF_8));
    }

    private static String decoded(String word) throws IOException {
        return URLDecoder.decode(word, "UTF-8");
    }

    private static String json(String text) {
        StringBuilder quoted = new StringBuilder("\"");
        for (char each : text.toCharArray()) {
            if (each == '"' || each == '\\') {
                quoted.append('\\').append(each);
            } else if (each < ' ' || each == '\u007f') {
                quoted.append(String.format("\\u%04x", (int) each));
            } else {
                quoted.append(each);
            }
        }
        return quoted.append('"').toString();
    }
}
